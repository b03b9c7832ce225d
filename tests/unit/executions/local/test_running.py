"""A run without a platform: steps in order, their parameters, pauses, and the events of its listener."""

import threading

import pytest

from executions.states import ExecutionState, StepState
from foundation.errors import InvalidInput
from isolane.limits import RunLimits
from isolane.protocol import Log, Progress, Run
from isolane.results import Code, StepResult
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import succeeds
from tests.unit.executions.local.trial import Trial, echo, states


def test_steps_run_in_order_and_see_each_other() -> None:
    trial = Trial(
        {"one": succeeds({"n": 1}), "echo": echo},
        {"uses": "one"},
        {"uses": "echo", "with": {"n": "${steps.s0.n}", "who": "${inputs.who}"}},
        given={"who": "Ada"},
        outputs={"n": "${steps.s1.n}"},
    )
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert run.outputs == {"n": 1}
    assert run.steps[1].inputs == run.steps[1].output == {"n": 1, "who": "Ada"}
    assert [placement.epoch for placement in trial.backend.closed] == [1]


def test_who_submitted_it_and_the_request_are_known_to_the_steps() -> None:
    ids = []
    for _ in range(2):
        trial = Trial({"n": succeeds({})}, {"uses": "n"}, {"uses": "n"})
        trial.run()
        identities = [runtime.identity for runtime in trial.backend.runtimes]
        assert {identity.user_id for identity in identities} == {"local"}
        ids.append({identity.request_id for identity in identities})
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]
    assert all(len(request_id) == 32 for found in ids for request_id in found)


def test_the_stricter_of_the_commands_limits_and_the_blueprints_counts() -> None:
    trial = Trial({"n": succeeds({})}, {"uses": "n"}, limits={"ram_mb": 128, "output_kb": 64})
    trial.run(limits=RunLimits(ram_mb=512, output_kb=8))
    assert [runtime.limits for runtime in trial.backend.runtimes] == [
        RunLimits(ram_mb=128, output_kb=8)
    ]


def test_inputs_are_checked_before_anything_runs() -> None:
    trial = Trial({"one": succeeds(1)}, {"uses": "one"}, inputs={"required": ["who"]})
    with pytest.raises(InvalidInput, match="'who' is a required property"):
        trial.run()
    assert trial.uses == []


def test_a_step_whose_condition_does_not_hold_is_skipped() -> None:
    trial = Trial(
        {"one": succeeds({"ok": False}), "two": succeeds(2)},
        {"uses": "one"},
        {"uses": "two", "when": "${steps.s0.ok}"},
    )
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert states(run) == [StepState.SUCCEEDED, StepState.SKIPPED]
    assert trial.uses == ["one"]


def test_a_pause_closes_the_context_and_the_runs_time_stands_still() -> None:
    def pause(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        return StepResult.succeeded(step=run.step, attempt=1, output=None, pause_s=3600.0)

    trial = Trial(
        {"pause": pause, "one": succeeds(1)}, {"uses": "pause"}, {"uses": "one"}, timeout="10s"
    )
    assert trial.run().state is ExecutionState.SUCCEEDED
    assert trial.clock.waited == [3600.0]
    assert [placement.epoch for placement in trial.backend.closed] == [1, 2]


def test_a_pause_at_the_end_is_waited_for() -> None:
    def pause(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        return StepResult.succeeded(step=run.step, attempt=1, output={"n": 1}, pause_s=5.0)

    trial = Trial({"pause": pause}, {"uses": "pause"}, outputs={"n": "${steps.s0.n}"})
    run = trial.run()
    assert (run.state, run.outputs, trial.clock.waited) == (
        ExecutionState.SUCCEEDED,
        {"n": 1},
        [5.0],
    )


def test_variables_are_handed_on() -> None:
    def sets(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        return StepResult.succeeded(step=run.step, attempt=1, output=None, variables={"x": 1})

    trial = Trial(
        {"sets": sets, "echo": echo}, {"uses": "sets"}, {"uses": "echo", "with": {"x": "${vars.x}"}}
    )
    run = trial.run()
    assert run.variables == {"x": 1}
    assert run.steps[1].output == {"x": 1}


def test_what_is_sensitive_is_masked_wherever_it_is_told() -> None:
    def speaks(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        on_frame(Log(step=run.step, level="info", message="card 4111-1111 pin 98765"))
        on_frame(Progress(step=run.step, fraction=0.5, message="pin 98765"))
        return succeeds({"pin": "98765", "n": 1})(run, cancelled, on_frame)

    trial = Trial(
        {"speaks": speaks, "echo": echo},
        {"uses": "speaks", "sensitive": ["pin"]},
        {
            "uses": "echo",
            "with": {"pin": "${steps.s0.pin}", "card": "${inputs.card}"},
            "sensitive": True,
        },
        inputs={"properties": {"card": {"type": "string", "sensitive": True}}},
        given={"card": "4111-1111"},
        outputs={"n": "${steps.s0.n}", "pin": "${steps.s0.pin}"},
    )
    run = trial.run()
    assert run.inputs == {"card": "***"}
    assert run.outputs == {"n": 1, "pin": "***"}
    assert [step.output for step in run.steps] == [{"pin": "***", "n": 1}, "***"]
    assert trial.backend.runs[1][1].parameters == {"pin": "98765", "card": "4111-1111"}
    assert trial.events.lines == ["s0 info card *** pin ***"]
    assert "98765" not in str(run)


def test_a_line_is_told_before_the_step_has_ended_and_a_trace_after() -> None:
    def speaks(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        on_frame(Log(step=run.step, level="info", message="hello"))
        assert trial.events.lines == ["s0 info hello"]
        return StepResult.failed(
            step=run.step, attempt=1, code=Code.UNKNOWN_ERROR, message="KeyError", trace="line 7"
        )

    trial = Trial({"speaks": speaks}, {"uses": "speaks"})
    trial.run()
    assert trial.events.lines == ["s0 info hello", "s0 raised line 7"]
    assert trial.events.states == ["s0#1 failed"]
