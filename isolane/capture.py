"""What a step prints or logs becomes log lines of that step.

Timing: a line is sent when it is complete, in the thread that wrote it; the rest at the step's end.
Model: replaces sys.stdout and sys.stderr and adds one handler to the root logger, once per process.
Guarantee: lines keep their order per stream; outside of a step they are dropped.
Failure: no line is too long or unfit to be stored; a longer one is sent in pieces.
"""

import io
import logging
import sys
import threading
from collections.abc import Callable

from isolane.protocol import Level
from isolane.text import LINE_MAX, storable

Emit = Callable[[Level, str], None]


class LineStream(io.TextIOBase):
    """A text stream that hands on whole lines."""

    def __init__(self, emit: Emit, level: Level) -> None:
        self._emit = emit
        self._level: Level = level
        self._rest = ""
        self._lock = threading.RLock()  # a finaliser may print while this thread prints

    def writable(self) -> bool:
        """Say that one can write to it."""
        return True

    def write(self, text: str) -> int:
        """Take text and hand on the lines that it completes."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._hand_on(line)
            while len(self._rest) >= LINE_MAX:
                self._rest, piece = self._rest[LINE_MAX:], self._rest[:LINE_MAX]
                self._hand_on(piece)
        return len(text)

    def finish(self) -> None:
        """Hand on a last line that has no end."""
        with self._lock:
            rest, self._rest = self._rest, ""
            if rest:
                self._hand_on(rest)

    def _hand_on(self, line: str) -> None:
        for start in range(0, len(line) or 1, LINE_MAX):
            self._emit(self._level, storable(line[start : start + LINE_MAX], LINE_MAX))


class LogHandler(logging.Handler):
    """A logging handler that hands on records as lines."""

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._hand_on = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on one record."""
        self._hand_on(_level(record.levelno), storable(self.format(record), LINE_MAX))


def _level(number: int) -> Level:
    if number < logging.INFO:
        return "debug"
    if number < logging.WARNING:
        return "info"
    return "warning" if number < logging.ERROR else "error"


class Capture:
    """The capturing of one process; `emit` gets what is written."""

    def __init__(self, emit: Emit) -> None:
        self._streams = (LineStream(emit, "info"), LineStream(emit, "warning"))
        self._handler = LogHandler(emit)

    def install(self) -> None:
        """Take the place of the process's output."""
        sys.stdout, sys.stderr = self._streams
        logging.getLogger().addHandler(self._handler)
        logging.getLogger().setLevel(logging.INFO)

    def finish(self) -> None:
        """Send lines that have no end yet."""
        for stream in self._streams:
            stream.finish()
