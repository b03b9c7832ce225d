"""What a step prints or logs becomes log lines of that step.

Timing: a line is sent when it is complete, in the thread that wrote it; the rest at the step's end.
Model: replaces sys.stdout and sys.stderr, adds one handler to the root logger, once per process, and reads what reaches
descriptors 1 and 2 past them (isolane.pipes).
Guarantee: lines keep their order per stream, whichever way they came; outside of a step they are dropped.
Failure: no line is too long or unfit to be stored; a longer one is sent in pieces.
"""

import io
import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from functools import partial

from isolane.guard import Guard
from isolane.pipes import Pipes
from isolane.protocol import Level
from isolane.text import LINE_MAX, storable

Emit = Callable[[Level, str], None]
Before = Callable[[], object]


class LineStream(io.TextIOBase):
    """A text stream that hands on whole lines."""

    def __init__(self, emit: Emit, level: Level, guard: Guard, before: Before) -> None:
        self._emit = emit
        self._level: Level = level
        self._guard = guard
        self._before = before
        self._rest = ""
        self._late: deque[str] = deque()

    def writable(self) -> bool:
        """Say that one can write to it."""
        return True

    def write(self, text: str) -> int:
        """Take text, after what was said before it, and hand on the lines that it completes."""
        if self._guard.busy():
            self._late.append(text)  # comes with what is said next
        else:
            self._before()
            self.feed(text)
        return len(text)

    def feed(self, text: str) -> None:
        """Hand on the lines that this text completes."""
        with self._guard.lock:
            while self._late:
                self._split(self._late.popleft())
            self._split(text)

    def finish(self) -> None:
        """Hand on a last line that has no end."""
        with self._guard.lock:
            if self._late:
                self.feed("")
            rest, self._rest = self._rest, ""
            if rest:
                self._hand_on(rest)

    def divert(self, emit: Emit) -> None:
        """Hand on to somebody else, without what was begun for the one before."""
        self._emit, self._rest = emit, ""
        self._late.clear()

    def _split(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._hand_on(line)
        while len(self._rest) >= LINE_MAX:
            self._rest, piece = self._rest[LINE_MAX:], self._rest[:LINE_MAX]
            self._hand_on(piece)

    def _hand_on(self, line: str) -> None:
        for start in range(0, len(line) or 1, LINE_MAX):
            self._emit(self._level, storable(line[start : start + LINE_MAX], LINE_MAX))


class LogHandler(logging.Handler):
    """A logging handler that hands on records as lines."""

    def __init__(self, emit: Emit, before: Before) -> None:
        super().__init__()
        self._hand_on = emit
        self._before = before

    def divert(self, emit: Emit) -> None:
        """Hand on to somebody else."""
        self._hand_on = emit

    def createLock(self) -> None:  # noqa: N802 - the name is logging's
        """Have none: who sends has one, and whoever holds both could wait for a finaliser that logs."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on one record, after what was said before it."""
        self._before()
        self._hand_on(_level(record.levelno), storable(self.format(record), LINE_MAX))


def _level(number: int) -> Level:
    if number < logging.INFO:
        return "debug"
    if number < logging.WARNING:
        return "info"
    return "warning" if number < logging.ERROR else "error"


class Capture:
    """The capturing of one process; `emit` gets what is written."""

    def __init__(self, emit: Emit, guard: Guard) -> None:
        self._guard = guard
        stdout = LineStream(emit, "info", guard, self.catch_up)
        stderr = LineStream(emit, "warning", guard, self.catch_up)
        self._streams = (stdout, stderr)
        self._handler = LogHandler(emit, self.catch_up)
        self._pipes = Pipes(guard, {1: stdout.feed, 2: stderr.feed})

    def install(self) -> None:
        """Take the place of the output of this process's Python code."""
        sys.stdout, sys.stderr = self._streams
        logging.getLogger().addHandler(self._handler)
        logging.getLogger().setLevel(logging.INFO)

    def install_pipes(self) -> None:
        """Take the place of descriptors 1 and 2, which other code and other programs write to."""
        self._pipes.install()

    def catch_up(self) -> None:
        """Send the lines that are written already, before something else is sent."""
        self._pipes.drain()

    def finish(self) -> None:
        """Send what is written already, and lines that have no end yet."""
        self._pipes.finish()
        for stream in self._streams:
            stream.finish()

    def forked(self) -> None:
        """In a forked child: say all through the descriptors, which its parent reads."""
        self._guard.forked()
        self._pipes.forked()
        for number, stream in enumerate(self._streams, start=1):
            stream.divert(partial(_write, number))
        self._handler.divert(partial(_write, 2))


def _write(number: int, _level: Level, line: str) -> None:
    os.write(number, f"{line}\n".encode())
