"""resources.runtimes.supervision: how much a step may say."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from isolane.protocol import Frame, Log, ProtocolError, Run
from isolane.results import StepResult
from resources.runtimes import runner, supervision
from resources.runtimes.base import OnFrame, ignore
from resources.runtimes.runner import Runner
from resources.runtimes.supervision import DROPPED, LOG_LINES, OUTPUT_KB, LogBudget, Supervision

RUN = Run(
    step="pay", uses="a.b", parameters={}, variables={}, attempt=0, seed=1, timeout_s=1, idempotency_key="k"
)  # fmt: skip


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


class Flood:
    """A runner that sends so many lines of another attempt before the result."""

    is_pending = False

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._nonce = ""
        self.stream = self

    def send(self, run: Run, timeout: float) -> None:
        self._nonce = run.nonce
        self._frames = self._all()

    def receive(self, timeout: float) -> Frame:
        return next(self._frames)

    def _all(self) -> Iterator[Frame]:
        yield from [replace(line("x"), nonce="other")] * self._lines
        yield replace(StepResult.succeeded(step="pay", attempt=0, output=1), nonce=self._nonce)


class CountedEvent(threading.Event):
    """Counts how often somebody waits for it."""

    waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return False


@pytest.mark.parametrize(("lines", "waits"), [(9, 0), (10, 1), (29, 20)])
def test_a_step_that_says_very_much_is_read_slowly(
    monkeypatch: pytest.MonkeyPatch, lines: int, waits: int
) -> None:
    monkeypatch.setattr(supervision, "_QUICK_FRAMES", 10)
    cancelled, child = CountedEvent(), cast("Runner", Flood(lines))
    found = Supervision(
        child,
        RUN,
        deadline=time.monotonic() + 60,
        cancelled=cancelled,
        on_frame=cast("OnFrame", pytest.fail),
    ).result()
    assert (found.output, cancelled.waits) == (1, waits)


def test_before_an_answer_it_may_not_say_very_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_FRAMES_MAX", 10)
    for lines in (9, 10):
        flood = Flood(lines)
        flood.send(RUN, 1)
        if lines < 10:
            assert isinstance(Runner._reply(cast("Runner", flood), 1.0, ignore), StepResult)
        else:
            with pytest.raises(ProtocolError, match="more than 10 frames before an answer"):
                Runner._reply(cast("Runner", flood), 1.0, ignore)
