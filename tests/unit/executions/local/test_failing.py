"""A run without a platform: failures, retries and recoveries, and what ends it early."""

import threading
from decimal import Decimal

import pytest

from executions.states import ExecutionState, StepState
from isolane.protocol import Cost, Run
from isolane.results import Code, StepResult
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import fails, succeeds
from tests.unit.executions.local.trial import Trial, echo, flaky, states


def test_a_failure_aborts_and_what_follows_is_skipped() -> None:
    trial = Trial({"bad": fails(Code.POLICY_VIOLATION, "no")}, {"uses": "bad"}, {"uses": "bad"})
    run = trial.run()
    assert (run.state, run.code, run.message) == (ExecutionState.FAILED, "POLICY_VIOLATION", "no")
    assert states(run) == [StepState.FAILED, StepState.SKIPPED]


def test_a_failure_may_be_passed_over() -> None:
    trial = Trial(
        {"bad": fails(Code.UNKNOWN_ERROR), "one": succeeds(1)},
        {"uses": "bad", "on_failure": "continue"},
        {"uses": "one"},
    )
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert states(run) == [StepState.FAILED, StepState.SUCCEEDED]


def test_a_retry_waits_and_the_same_seed_waits_the_same() -> None:
    waits = []
    for _ in range(2):
        trial = Trial({"flaky": flaky(2)}, {"uses": "flaky", "on_failure": "retry"})
        run = trial.run(seed=5)
        assert run.state is ExecutionState.SUCCEEDED
        assert run.steps[0].output == {"attempt": 3}
        waits.append(trial.clock.waited)
    assert waits[0] == waits[1]
    assert 1 <= waits[0][0] < 2
    assert 2 <= waits[0][1] < 3
    assert len({run.seed for _, run in trial.backend.runs}) == 1


def test_a_recovery_takes_the_place_of_the_step() -> None:
    trial = Trial(
        {"bad": fails(Code.UNKNOWN_ERROR, "broken"), "echo": echo},
        {
            "uses": "bad",
            "on_failure": "recover",
            "recover": {"uses": "echo", "with": {"why": "${error.code}"}},
        },
    )
    run = trial.run()
    step = run.steps[0]
    assert (run.state, step.state, step.code) == (
        ExecutionState.SUCCEEDED, StepState.SUCCEEDED, "UNKNOWN_ERROR",
    )  # fmt: skip
    assert step.output == {"why": "UNKNOWN_ERROR"}
    assert step.attempt == 2


def test_the_runs_own_timeout_ends_it() -> None:
    trial = Trial(
        {"flaky": flaky(9)},
        {"uses": "flaky", "on_failure": "retry", "retry": {"attempts": 9}},
        timeout="2s",
    )
    run = trial.run()
    assert (run.state, run.code) == (ExecutionState.TIMED_OUT, "TIMEOUT")
    assert sum(trial.clock.waited) == pytest.approx(2)
    assert states(run) == [StepState.FAILED]


def test_a_runtime_that_died_is_replaced() -> None:
    trial = Trial({}, {"uses": "dies", "on_failure": "continue"}, {"uses": "one"})

    def dies(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        trial.backend.stop()
        return fails(Code.UNKNOWN_ERROR)(run, cancelled, on_frame)

    trial.backend.script = {"dies": dies, "one": succeeds(1)}
    assert states(trial.run()) == [StepState.FAILED, StepState.SUCCEEDED]
    assert [placement.epoch for placement, _ in trial.backend.runs] == [1, 2]


def test_a_budget_ends_the_run() -> None:
    def costly(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        on_frame(Cost(step=run.step, kind="eur", amount=0.6))
        return succeeds(1)(run, cancelled, on_frame)

    steps = [{"uses": "costly"}] * 3
    run = Trial({"costly": costly}, *steps, budget={"eur": 1}).run()
    assert (run.state, run.code) == (ExecutionState.FAILED, "BUDGET_EXCEEDED")
    assert states(run) == [StepState.SUCCEEDED, StepState.SUCCEEDED, StepState.FAILED]
    assert str(run.costs["eur"]) == "1.2"


@pytest.mark.parametrize(
    ("code", "state"),
    [(Code.CANCELLED, ExecutionState.CANCELLED), (Code.TIMEOUT, ExecutionState.TIMED_OUT)],
)
def test_an_attempt_that_is_ended_is_billed_for_what_it_had_said(
    code: Code, state: ExecutionState
) -> None:
    def spend(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        on_frame(Cost(step=run.step, kind="tokens", amount=5))
        return fails(code, "ended")(run, cancelled, on_frame)

    ran = Trial({"spend": spend}, {"uses": "spend"}).run()
    assert (ran.state, ran.costs) == (state, {"tokens": Decimal(5)})


def test_cancelled_while_it_waits() -> None:
    trial = Trial({"flaky": flaky(1)}, {"uses": "flaky", "on_failure": "retry"}, {"uses": "flaky"})

    def wait(seconds: float, cancelled: threading.Event) -> None:
        cancelled.set()

    trial.clock.wait = wait  # type: ignore[method-assign]  # somebody presses Ctrl-C meanwhile
    run = trial.run()
    assert (run.state, run.code) == (ExecutionState.CANCELLED, "CANCELLED")
    assert states(run) == [StepState.CANCELLED, StepState.CANCELLED]
    assert len(trial.backend.closed) == 1
