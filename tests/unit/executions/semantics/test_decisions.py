"""executions.semantics.decisions: the decision after an attempt, for every code, failure mode and attempt."""

from itertools import product
from typing import Any

import pytest

from executions.blueprints.plan import FailureMode, Guarantee, Plan, plan
from executions.semantics.decisions import (
    MAX_HELD_SECONDS,
    StepDecision,
    after_loss,
    after_skip,
    after_step,
)
from executions.semantics.seeds import backoff_ms, derive_seed
from executions.states import ExecutionState, StepState
from isolane.results import RETRY_BASE_MS, Code, StepResult

ABORT, CONTINUE, RETRY, RECOVER = FailureMode
SEED = 7
RETRYABLE = {"TRANSIENT_ERROR", "RATE_LIMIT_ERROR", "TIMEOUT", "RESOURCE_ERROR"}
# What a step's failure does in the end: its mode, or after the last attempt of a retry its `then`.
MODES = [(ABORT, ABORT), (CONTINUE, ABORT), (RECOVER, ABORT)]
MODES += [(RETRY, then) for then in (ABORT, CONTINUE, RECOVER)]
SUCCEEDED = StepDecision(state=StepState.SUCCEEDED, next_step="", outcome=ExecutionState.SUCCEEDED)


def make_plan(mode: FailureMode = ABORT, then: FailureMode = ABORT, **step: Any) -> Plan:
    """Two steps, `one` and `last`, that fail alike."""
    step |= {"uses": "work", "on_failure": mode.value}
    if mode is RETRY:
        step["retry"] = {"attempts": 3, "then": then.value}
    if RECOVER in (mode, then):
        step["recover"] = {"uses": "work"}
    return plan({"name": "flow", "steps": [{"key": key, **step} for key in ("one", "last")]})


def failed(code: Code, *, path: str = "one", attempt: int = 1) -> StepResult:
    return StepResult.failed(step=path, attempt=attempt, code=code, message="")


def ended(outcome: str) -> StepDecision:
    state = StepState.CANCELLED if outcome == "cancelled" else StepState.FAILED
    return StepDecision(state=state, next_step="", outcome=ExecutionState(outcome))


# --- success
def test_a_success_leads_to_the_next_step() -> None:
    result = StepResult.succeeded(step="one", attempt=1, output=None)
    expected = StepDecision(state=StepState.SUCCEEDED, next_step="last")
    assert after_step(make_plan(), result, seed=SEED) == expected


@pytest.mark.parametrize("path", ["one", "last"])
@pytest.mark.parametrize("recovers_from", [None, Code.UNKNOWN_ERROR])
def test_a_question_suspends_the_step_until_its_time(path: str, recovers_from: Code | None) -> None:
    result = StepResult.succeeded(step=path, attempt=1, output=None, pause_s=90.0, question="Pay?")
    decided = after_step(make_plan(RECOVER), result, seed=SEED, recovers_from=recovers_from)
    assert decided == StepDecision(
        state=StepState.SUSPENDED,
        next_step=path,
        recovering=recovers_from is not None,
        pause_s=90.0,
    )
    assert decided.wake_s == 90.0


@pytest.mark.parametrize(("mode", "then"), MODES)
def test_the_last_success_ends_the_run(mode: FailureMode, then: FailureMode) -> None:
    result = StepResult.succeeded(step="last", attempt=3, output=None)
    for recovers_from in (None, Code.TIMEOUT):
        decided = after_step(make_plan(mode, then), result, seed=SEED, recovers_from=recovers_from)
        assert decided == SUCCEEDED


def test_a_success_after_the_runs_time_still_counts() -> None:
    """The next claim finds that no time is left."""
    result = StepResult.succeeded(step="last", attempt=1, output=None)
    assert after_step(make_plan(), result, seed=SEED, run_is_over=True) == SUCCEEDED


def test_a_pause_gives_the_slot_away_before_the_next_step() -> None:
    result = StepResult.succeeded(step="one", attempt=1, output=None, pause_s=5)
    decided = after_step(make_plan(), result, seed=SEED)
    assert decided == StepDecision(state=StepState.SUCCEEDED, next_step="last", pause_s=5)
    assert decided.wake_s == 5


def test_a_pause_as_the_last_step_leaves_the_end_to_the_wake_up() -> None:
    result = StepResult.succeeded(step="last", attempt=1, output=None, pause_s=5)
    decided = after_step(make_plan(), result, seed=SEED)
    assert (decided.next_step, decided.outcome, decided.wake_s) == ("", None, 5)


def test_a_skipped_step_leads_to_the_next_or_ends_the_run() -> None:
    skipped = StepDecision(state=StepState.SKIPPED, next_step="last")
    assert after_skip(make_plan(), "one") == skipped
    end = after_skip(make_plan(), "last")
    assert (end.state, end.outcome) == (StepState.SKIPPED, ExecutionState.SUCCEEDED)


# --- failure: all codes, modes and attempts
@pytest.mark.parametrize(("path", "attempt"), list(product(("one", "last"), (1, 2, 3))))
@pytest.mark.parametrize(("mode", "then"), MODES)
@pytest.mark.parametrize("code", Code)
def test_a_failure_does_what_its_mode_says(
    code: Code, mode: FailureMode, then: FailureMode, path: str, attempt: int
) -> None:
    decided = after_step(make_plan(mode, then), failed(code, path=path, attempt=attempt), seed=SEED)
    if code == "CANCELLED":
        assert decided == ended("cancelled")
    elif code == "BUDGET_EXCEEDED":
        assert decided == ended("failed")
    elif mode is RETRY and code in RETRYABLE and attempt < 3:
        assert (decided.state, decided.next_step) == (StepState.RETRYING, path)
        assert (decided.outcome, decided.recovering, decided.pause_s) == (None, False, 0)
        assert decided.retry_s is not None
        assert decided.retry_s >= RETRY_BASE_MS[code] / 1000
    else:
        assert decided == acted(then if mode is RETRY else mode, code, path)


def acted(mode: FailureMode, code: Code, path: str) -> StepDecision:
    """Return the checkpoint of a mode other than retry."""
    if mode is ABORT:
        return ended("timed_out" if code == "TIMEOUT" else "failed")
    if mode is RECOVER:
        return StepDecision(state=StepState.RETRYING, next_step=path, retry_s=0.0, recovering=True)
    over = path == "last"
    return StepDecision(
        state=StepState.FAILED,
        next_step="" if over else "last",
        outcome=ExecutionState.SUCCEEDED if over else None,
    )


@pytest.mark.parametrize(("mode", "then"), MODES)
@pytest.mark.parametrize("code", Code)
def test_a_run_that_is_over_ends_whatever_the_mode(
    code: Code, mode: FailureMode, then: FailureMode
) -> None:
    for recovers_from in (None, Code.UNKNOWN_ERROR):
        decided = after_step(
            make_plan(mode, then),
            failed(code),
            seed=SEED,
            recovers_from=recovers_from,
            run_is_over=True,
        )
        assert decided == ended("cancelled" if code == "CANCELLED" else "timed_out")


@pytest.mark.parametrize("code", Code)
def test_a_recovery_that_fails_is_neither_retried_nor_recovered(code: Code) -> None:
    for first, end in ((Code.UNKNOWN_ERROR, "failed"), (Code.TIMEOUT, "timed_out")):
        ends = {Code.CANCELLED: "cancelled", Code.BUDGET_EXCEEDED: "failed"}
        for mode, then in ((RECOVER, ABORT), (RETRY, RECOVER)):
            decided = after_step(
                make_plan(mode, then), failed(code), seed=SEED, recovers_from=first
            )
            assert decided == ended(ends.get(code, end))


# --- backoff
def test_the_backoff_is_that_of_the_steps_own_seed_and_attempt() -> None:
    flow = make_plan(RETRY)
    for position, path in enumerate(("one", "last")):
        for attempt in (1, 2):
            result = failed(Code.TRANSIENT_ERROR, path=path, attempt=attempt)
            wanted = backoff_ms(1000, seed=derive_seed(SEED, position), attempt=attempt - 1)
            first, again = (after_step(flow, result, seed=SEED) for _ in range(2))
            assert first == again
            assert first.retry_s == wanted / 1000


@pytest.mark.parametrize(
    ("retry_s", "wake_s"),
    [(None, 0), (0.0, 0), (MAX_HELD_SECONDS, 0), (MAX_HELD_SECONDS + 0.001, 60.001)],
)
def test_up_to_a_minute_a_backoff_keeps_the_slot(retry_s: float | None, wake_s: float) -> None:
    decided = StepDecision(state=StepState.RETRYING, next_step="one", retry_s=retry_s)
    assert decided.wake_s == wake_s


# --- loss
@pytest.mark.parametrize("mode", [ABORT, CONTINUE, RECOVER])
@pytest.mark.parametrize("guarantee", Guarantee)
def test_a_step_that_is_cut(guarantee: Guarantee, mode: FailureMode) -> None:
    flow = make_plan(mode, guarantee=guarantee.value)
    for path in ("one", "last"):
        decided = after_loss(flow, path, recovering=False)
        if guarantee == "at_most_once":
            assert decided == acted(mode, Code.OUTCOME_UNKNOWN, path)
        elif guarantee == "best_effort":
            assert decided == acted(CONTINUE, Code.OUTCOME_UNKNOWN, path)
        else:
            assert decided is None
        assert after_loss(flow, path, recovering=True) is None
