"""isolane.capture: prints and log records become lines."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from isolane.capture import LineStream, LogHandler
from isolane.output_lock import OutputLock
from isolane.protocol import Level
from isolane.text import LINE_MAX


class Lines(list[tuple[Level, str]]):
    """Keeps what was emitted."""

    def emit(self, level: Level, message: str) -> None:
        self.append((level, message))

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self]


def a_stream(lines: Lines) -> LineStream:
    """A stream with nothing beside it."""
    return LineStream(lines.emit, "info", OutputLock(), int)


def test_lines_are_handed_on_when_complete() -> None:
    lines = Lines()
    stream = a_stream(lines)
    print("a", "b", file=stream)
    assert lines == [("info", "a b")]
    stream.write("c")
    stream.write("d\n\ne")
    assert lines.texts == ["a b", "cd", ""]
    stream.finish()
    stream.finish()
    assert lines.texts == ["a b", "cd", "", "e"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_line_comes_in_pieces(end: str) -> None:
    lines = Lines()
    stream = a_stream(lines)
    stream.write("x" * (2 * LINE_MAX + 5) + end)
    stream.finish()
    assert [len(text) for text in lines.texts] == [LINE_MAX, LINE_MAX, 5]


def test_what_cannot_be_stored_is_replaced() -> None:
    lines = Lines()
    a_stream(lines).write("a\x00b\ud800\n")
    assert lines.texts == ["a\ufffdb?"]


@pytest.mark.parametrize(
    ("number", "level"),
    [
        (logging.DEBUG, "debug"),
        (logging.INFO, "info"),
        (logging.WARNING, "warning"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "error"),
    ],
)
def test_a_record_keeps_its_level(number: int, level: Level) -> None:
    lines = Lines()
    record = logging.LogRecord("shop", number, __file__, 1, "sold %d", (3,), None)
    LogHandler(lines.emit, lambda: lines.emit("info", "before")).handle(record)
    assert lines == [("info", "before"), (level, "sold 3")]


def test_what_was_said_before_comes_first() -> None:
    lines = Lines()
    stream = LineStream(lines.emit, "info", OutputLock(), lambda: stream.feed("raw\n"))
    stream.write("printed\n")
    assert lines.texts == ["raw", "printed"]


def test_what_is_printed_in_the_midst_of_sending_comes_with_the_next_line() -> None:
    """A finaliser may print there; were it to wait for a thread that waits to send, both would for ever."""
    lines, busy = Lines(), [True]
    guard = OutputLock(lambda: busy[0])
    stream = LineStream(lines.emit, "info", guard, pytest.fail)
    with another_thread_holding(guard):
        assert stream.write("late\n") == 5
    assert lines == []
    busy[0] = False
    stream.finish()
    assert lines.texts == ["late"]


@contextlib.contextmanager
def another_thread_holding(guard: OutputLock) -> Iterator[None]:
    """Have another thread hold the lock."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with guard.lock:
            held.set()
            release.wait(10)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        held.wait(10)
        yield
        release.set()
