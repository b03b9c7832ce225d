"""isolane.capture: prints and log records become lines."""

import logging

import pytest

from isolane.capture import LineStream, LogHandler
from isolane.protocol import Level
from isolane.text import LINE_MAX


class Lines(list[tuple[Level, str]]):
    """Keeps what was emitted."""

    def emit(self, level: Level, message: str) -> None:
        self.append((level, message))

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self]


def test_lines_are_handed_on_when_complete() -> None:
    lines = Lines()
    stream = LineStream(lines.emit, "info")
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
    stream = LineStream(lines.emit, "info")
    stream.write("x" * (2 * LINE_MAX + 5) + end)
    stream.finish()
    assert [len(text) for text in lines.texts] == [LINE_MAX, LINE_MAX, 5]


def test_what_cannot_be_stored_is_replaced() -> None:
    lines = Lines()
    LineStream(lines.emit, "info").write("a\x00b\ud800\n")
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
    LogHandler(lines.emit).handle(record)
    assert lines == [(level, "sold 3")]
