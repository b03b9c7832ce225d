"""executions.semantics.attempt_output: lines in order, the newest progress, costs summed by kind."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest

from executions.blueprints.plan import WHOLE
from executions.semantics.attempt_output import (
    MAX_COST_KINDS,
    MAX_PROGRESS,
    MAX_PROGRESS_BYTES,
    PROGRESS_DROPPED,
    AttemptOutput,
)
from executions.semantics.attempt_record import LogLine
from executions.semantics.masking import Masker
from isolane.protocol import Cost, Log, Progress
from isolane.text import LINE_MAX

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def output() -> AttemptOutput:
    """Its clock goes on by a second with each look."""
    seconds = count()
    return AttemptOutput(now=lambda: START + timedelta(seconds=next(seconds)))


def log(message: str) -> Log:
    return Log(step="one", level="info", message=message)


def cost(kind: str, amount: float) -> Cost:
    return Cost(step="one", kind=kind, amount=amount)


def test_lines_are_taken_once_and_in_order(output: AttemptOutput) -> None:
    for message in ("first", "second"):
        output.add(log(message))
    assert output.take_lines() == [
        LogLine(at=START, level="info", message="first"),
        LogLine(at=START + timedelta(seconds=1), level="info", message="second"),
    ]
    assert output.take_lines() == []


def test_a_line_is_younger_than_the_one_before_though_the_clock_was_put_back() -> None:
    clock = iter([START, START, START - timedelta(hours=1), START + timedelta(seconds=1)])
    output = AttemptOutput(now=lambda: next(clock))
    for _ in range(4):
        output.add(log("line"))
    tick = timedelta(microseconds=1)
    times = [line.at for line in output.take_lines()]
    assert times == [START, START + tick, START + 2 * tick, START + timedelta(seconds=1)]


def test_lines_that_are_given_back_come_first_again(output: AttemptOutput) -> None:
    output.add(log("first"))
    taken = output.take_lines()
    output.add(log("second"))
    output.give_back(taken)
    assert [line.message for line in output.take_lines()] == ["first", "second"]


def test_only_the_newest_progress_is_kept_and_taken_once(output: AttemptOutput) -> None:
    for fraction in (0.1, 0.5):
        output.add(Progress(step="one", fraction=fraction, message=""))
    assert output.take_progress() == Progress(step="one", fraction=0.5, message="")
    assert output.take_progress() is None


def report(message: str = "") -> Progress:
    return Progress(step="one", fraction=0.5, message=message)


def test_progress_is_taken_less_and_less_often_however_long_a_step_runs() -> None:
    seconds = count()
    output = AttemptOutput(now=lambda: START + timedelta(seconds=next(seconds)))
    taken = 0
    for _ in range(2 * 86_400):  # a report each second, for two days
        output.add(report())
        taken += output.take_progress() is not None
    assert 100 < taken < MAX_PROGRESS
    assert output.take_lines() == []


def test_progress_that_says_too_much_is_dropped_and_that_is_said_once() -> None:
    hours = count()
    output = AttemptOutput(now=lambda: START + timedelta(hours=next(hours)))
    message = "x" * 2000
    taken = []
    for _ in range(500):
        output.add(report(message))
        taken.append(output.take_progress())
    assert sum(each is not None for each in taken) == MAX_PROGRESS_BYTES // 2000
    assert [line.message for line in output.take_lines()] == [PROGRESS_DROPPED]
    assert taken[-1] is None


def test_costs_of_a_kind_are_summed_exactly(output: AttemptOutput) -> None:
    for amount in (0.1, 0.2):
        output.add(cost("eur", amount))
    output.add(cost("tokens", 812))
    assert output.costs == {"eur": Decimal("0.3"), "tokens": Decimal(812)}
    assert output.refused == ""


def test_too_many_kinds_of_cost_are_refused_and_not_kept(output: AttemptOutput) -> None:
    for number in range(MAX_COST_KINDS):
        output.add(cost(f"kind_{number}", 1))
    output.add(cost("kind_0", 1))  # known: no kind more
    assert output.refused == ""
    output.add(cost("one_more", 1))
    assert "more than 20 kinds" in output.refused
    assert len(output.costs) == MAX_COST_KINDS
    assert output.costs["kind_0"] == 2


def test_pieces_of_a_line_that_is_too_long_are_known_as_such(output: AttemptOutput) -> None:
    for level, message in (
        ("info", "x" * LINE_MAX), ("warning", "between"), ("info", "x" * LINE_MAX), ("info", "x"), ("info", "new"),
    ):  # fmt: skip
        output.add(Log(step="one", level=level, message=message))  # type: ignore[arg-type]  # a literal
    assert [(line.continued, line.truncated) for line in output.take_lines()] == [
        (False, True), (False, False), (True, True), (True, False), (False, False),
    ]  # fmt: skip


def test_a_text_that_crosses_from_piece_to_piece_is_masked_in_both(output: AttemptOutput) -> None:
    masker = Masker()
    masker.learn("t0ken-of-the-step", {WHOLE})
    output.add(log("x" * (LINE_MAX - 5) + "t0ken"))
    output.add(log("-of-the-step is it"))
    first, second = (line.masked_by(masker).message for line in output.take_lines())
    assert first == "x" * (LINE_MAX - 5) + "***"
    assert second == "*** is it"
