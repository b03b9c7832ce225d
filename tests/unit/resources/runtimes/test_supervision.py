"""resources.runtimes.supervision: how much a step may say."""

from isolane.protocol import Log
from resources.runtimes.supervision import DROPPED, LOG_BYTES, LOG_LINES, LogBudget


def line(message: str) -> Log:
    return Log(step="pay", level="info", message=message)


def test_lines_are_counted_and_their_end_is_said_once() -> None:
    budget = LogBudget()
    admitted = [budget.admit(line("x")) for _ in range(LOG_LINES + 10)]
    last = Log(step="pay", level="warning", message=DROPPED)
    assert admitted == [line("x")] * LOG_LINES + [last] + [None] * 9


def test_bytes_are_counted_not_characters() -> None:
    budget = LogBudget()
    half = line("ü" * (LOG_BYTES // 4))
    assert [budget.admit(half), budget.admit(half)] == [half, half]
    dropped = budget.admit(line("x"))
    assert dropped is not None
    assert dropped.message == DROPPED
    assert budget.admit(line("")) is None
