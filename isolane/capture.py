"""The capture of output: text that a step prints or logs becomes log lines of that step.

Output that reaches descriptors 1 and 2 directly is read by `isolane.pipes`.

Timing: a line is sent when it is complete, in the thread that wrote it; the rest at the step's end.
Model: replaces sys.stdout and sys.stderr and adds one handler to the root logger, once per process.
Guarantee: lines keep their order per stream, whichever way they came; outside of a step they are dropped.
Failure: every line can be stored; one that is too long is sent in pieces.
"""

import io
import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from functools import partial

from isolane.output_lock import OutputLock
from isolane.pipes import Pipes
from isolane.protocol import Level
from isolane.text import LINE_MAX, storable

Emit = Callable[[Level, str], None]
Before = Callable[[], object]


class LineStream(io.TextIOBase):
    """A text stream that emits whole lines."""

    def __init__(self, emit: Emit, level: Level, guard: OutputLock, before: Before) -> None:
        self._emit = emit
        self._level: Level = level
        self._guard = guard
        self._before = before
        self._rest = ""
        self._late: deque[str] = deque()

    def writable(self) -> bool:
        """Return true: it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take text, after earlier output, and emit the lines that it completes."""
        if self._guard.busy():
            self._late.append(text)  # emitted with the next text
        else:
            self._before()
            self.feed(text)
        return len(text)

    def feed(self, text: str) -> None:
        """Emit the lines that this text completes."""
        with self._guard.lock:
            while self._late:
                self._split(self._late.popleft())
            self._split(text)

    def finish(self) -> None:
        """Emit a last line without a newline."""
        with self._guard.lock:
            if self._late:
                self.feed("")
            rest, self._rest = self._rest, ""
            if rest:
                self._emit_line(rest)

    def divert(self, emit: Emit) -> None:
        """Emit elsewhere from now on, without the line that was begun."""
        self._emit, self._rest = emit, ""
        self._late.clear()

    def _split(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._emit_line(line)
        while len(self._rest) >= LINE_MAX:
            self._rest, piece = self._rest[LINE_MAX:], self._rest[:LINE_MAX]
            self._emit_line(piece)

    def _emit_line(self, line: str) -> None:
        for start in range(0, len(line) or 1, LINE_MAX):
            self._emit(self._level, storable(line[start : start + LINE_MAX], LINE_MAX))


class LogHandler(logging.Handler):
    """A logging handler that emits records as lines."""

    def __init__(self, emit: Emit, before: Before) -> None:
        super().__init__()
        self._emit_line = emit
        self._before = before

    def divert(self, emit: Emit) -> None:
        """Emit elsewhere from now on."""
        self._emit_line = emit

    def createLock(self) -> None:  # noqa: N802 - the name is logging's
        """Use no lock: sending has one, and a thread with both could wait for a finaliser that logs."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Emit one record, after earlier output."""
        self._before()
        self._emit_line(_level(record.levelno), storable(self.format(record), LINE_MAX))


def _level(number: int) -> Level:
    if number < logging.INFO:
        return "debug"
    if number < logging.WARNING:
        return "info"
    return "warning" if number < logging.ERROR else "error"


class Capture:
    """The capture of one process; `emit` gets its lines."""

    def __init__(self, emit: Emit, guard: OutputLock) -> None:
        self._guard = guard
        stdout = LineStream(emit, "info", guard, self.catch_up)
        stderr = LineStream(emit, "warning", guard, self.catch_up)
        self._streams = (stdout, stderr)
        self._handler = LogHandler(emit, self.catch_up)
        self._pipes = Pipes(guard, {1: stdout.feed, 2: stderr.feed})

    def install(self) -> None:
        """Capture what Python code of this process prints and logs."""
        sys.stdout, sys.stderr = self._streams
        logging.getLogger().addHandler(self._handler)
        logging.getLogger().setLevel(logging.INFO)

    def install_pipes(self) -> None:
        """Capture descriptors 1 and 2, which C code and other programs write to."""
        self._pipes.install()

    def catch_up(self) -> None:
        """Emit the lines that are written already, before another frame is sent."""
        self._pipes.drain()

    def finish(self) -> None:
        """Emit what is written already, and lines without a newline."""
        self._pipes.finish()
        for stream in self._streams:
            stream.finish()

    def forked(self) -> None:
        """In a forked child: write all output to the descriptors, which its parent reads."""
        self._guard.forked()
        self._pipes.forked()
        for number, stream in enumerate(self._streams, start=1):
            stream.divert(partial(_write, number))
        self._handler.divert(partial(_write, 2))


def _write(number: int, _level: Level, line: str) -> None:
    os.write(number, f"{line}\n".encode())
