"""resources.runtimes.supervision: how much a step may say."""

from isolane.protocol import Log
from resources.runtimes.supervision import DROPPED, LOG_LINES, OUTPUT_KB, LogBudget


def line(message: str) -> Log:
    return Log(step="pay", level="info", message=message)


def test_lines_are_counted_and_their_end_is_said_once() -> None:
    budget = LogBudget()
    admitted = [budget.admit(line("x")) for _ in range(LOG_LINES + 10)]
    last = Log(step="pay", level="warning", message=DROPPED)
    assert admitted == [line("x")] * LOG_LINES + [last] + [None] * 9


def test_a_run_may_have_a_smaller_or_larger_limit() -> None:
    small, large = LogBudget(1), LogBudget(2 * OUTPUT_KB)
    half = line("x" * 512)
    assert [small.admit(half) for _ in range(2)] == [half, half]
    dropped = small.admit(line("x"))
    assert dropped is not None
    assert dropped.message == DROPPED
    whole = line("x" * OUTPUT_KB * 1024)
    assert [large.admit(whole) for _ in range(2)] == [whole, whole]


def test_bytes_are_counted_not_characters() -> None:
    budget = LogBudget()
    half = line("ü" * (OUTPUT_KB * 256))
    assert [budget.admit(half), budget.admit(half)] == [half, half]
    dropped = budget.admit(line("x"))
    assert dropped is not None
    assert dropped.message == DROPPED
    assert budget.admit(line("")) is None
