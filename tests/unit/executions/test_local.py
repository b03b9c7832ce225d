"""A run without a platform, over a runtime in memory and a clock that does not wait."""

import threading
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from executions.local import Clock, LocalEngine, LocalRun, LocalStep
from executions.semantics.replies import Reply
from executions.states import ExecutionState, StepState
from isolane.protocol import Cost, Log, Progress, Run
from isolane.results import Code, StepResult
from orchestrator.core.errors import InvalidInput
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import Behaviour, StubBackend, fails, succeeds


class FakeClock(Clock):
    """Time passes when somebody waits."""

    def __init__(self) -> None:
        self.at = 100.0
        self.waited: list[float] = []

    def now(self) -> float:
        return self.at

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        self.waited.append(seconds)
        self.at += seconds


class Heard:
    """Keeps what a watcher hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[str] = []
        self.replies: list[Reply | None] = []

    def said(self, step: str, level: str, message: str) -> None:
        self.lines.append(f"{step} {level} {message}")

    def progressed(self, step: str, fraction: float, message: str) -> None:
        self.lines.append(f"{step} {fraction} {message}")

    def raised(self, step: str, trace: str) -> None:
        self.lines.append(f"{step} raised {trace}")

    def attempted(self, step: LocalStep) -> None:
        self.states.append(f"{step.path}#{step.attempt} {step.state}")

    def waits(self, seconds: float) -> None:
        self.states.append("waits")

    def asks(self, step: str, question: str, expires_s: float) -> Reply | None:
        self.states.append(f"asks {question}")
        return self.replies.pop(0)


class Trial:
    """One local run with all that a test looks at."""

    def __init__(
        self, script: Mapping[str, Behaviour], *steps: dict[str, Any], **more: Any
    ) -> None:
        self.inputs = more.pop("given", {})
        self.document = {
            "name": "flow",
            "steps": [{"key": f"s{number}", **step} for number, step in enumerate(steps)],
            **more,
        }
        self.backend = StubBackend(level="shared", script=script)
        self.clock, self.heard, self.cancelled = FakeClock(), Heard(), threading.Event()

    def run(self, seed: int = 7) -> LocalRun:
        return LocalEngine(
            self.document,
            self.inputs,
            backend=self.backend,
            watcher=self.heard,
            seed=seed,
            cancelled=self.cancelled,
            clock=self.clock,
        ).run()

    @property
    def uses(self) -> list[str]:
        return [run.uses for _, run in self.backend.runs]


def echo(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """A node that gives its parameters back."""
    return StepResult.succeeded(step=run.step, attempt=run.attempt, output=run.parameters)


def flaky(failures: int, code: Code = Code.TRANSIENT_ERROR) -> Behaviour:
    """A node that fails so often, then succeeds."""
    left = [failures]

    def behave(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        left[0] -= 1
        behaviour = fails(code) if left[0] >= 0 else succeeds({"attempt": run.attempt})
        return behaviour(run, cancelled, on_frame)

    return behave


def states(run: LocalRun) -> list[StepState]:
    return [step.state for step in run.steps]


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
        assert {placement.user_id for placement, _run in trial.backend.runs} == {"local"}
        ids.append({placement.request_id for placement, _run in trial.backend.runs})
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]
    assert all(len(request_id) == 32 for found in ids for request_id in found)


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
    assert trial.heard.lines == ["s0 info card *** pin ***"]
    assert "98765" not in str(run)


def test_a_line_is_told_before_the_step_has_ended_and_a_trace_after() -> None:
    def speaks(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        on_frame(Log(step=run.step, level="info", message="hello"))
        assert trial.heard.lines == ["s0 info hello"]
        return StepResult.failed(
            step=run.step, attempt=1, code=Code.UNKNOWN_ERROR, message="KeyError", trace="line 7"
        )

    trial = Trial({"speaks": speaks}, {"uses": "speaks"})
    trial.run()
    assert trial.heard.lines == ["s0 info hello", "s0 raised line 7"]
    assert trial.heard.states == ["s0#1 failed"]


def asking(question: str = "Pay?", expires_s: float = 3600.0) -> Behaviour:
    """A node that asks a person."""
    return lambda run, cancelled, on_frame: StepResult.succeeded(
        step=run.step, attempt=run.attempt, output=None, pause_s=expires_s, question=question
    )


def yes(comment: str = "") -> Reply:
    return Reply(approved=True, by="ada", comment=comment)


@pytest.mark.parametrize("approved", [True, False])
def test_an_answer_is_the_output_and_the_run_goes_on_in_a_new_context(approved: bool) -> None:
    trial = Trial(
        {"ask": asking(), "pay": succeeds({"paid": True})},
        {"uses": "ask", "with": {"prompt": "Pay?"}},
        {"uses": "pay", "when": "${steps.s0.approved}"},
    )
    trial.heard.replies = [Reply(approved=approved, by="ada", comment="so be it")]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert run.steps[0].output == {"approved": approved, "by": "ada", "comment": "so be it"}
    assert (run.steps[0].inputs, run.steps[0].attempt) == ({"prompt": "Pay?"}, 1)
    assert trial.uses == (["ask", "pay"] if approved else ["ask"])
    assert trial.heard.states == [
        "s0#1 suspended", "asks Pay?", "s0#1 succeeded",
        "s1#1 succeeded" if approved else "s1#1 skipped",
    ]  # fmt: skip
    assert [placement.epoch for placement in trial.backend.closed] == ([1, 2] if approved else [1])


def test_while_a_person_is_asked_the_context_is_gone_and_the_runs_time_stands_still() -> None:
    trial = Trial(
        {"ask": asking(), "one": succeeds(1)}, {"uses": "ask"}, {"uses": "one"}, timeout="10s"
    )
    open_contexts = []

    def answer_late(step: str, question: str, expires_s: float) -> Reply:
        open_contexts.append(len(trial.backend.runs) - len(trial.backend.closed))
        trial.clock.at += 3_000
        return yes()

    trial.heard.asks = answer_late  # type: ignore[method-assign]  # somebody takes their time
    assert trial.run().state is ExecutionState.SUCCEEDED
    assert open_contexts == [0]


def test_a_question_at_the_end_ends_the_run_with_its_answer() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, outputs={"ok": "${steps.s0.approved}"})
    trial.heard.replies = [yes()]
    run = trial.run()
    assert (run.state, run.outputs) == (ExecutionState.SUCCEEDED, {"ok": True})


def test_a_question_that_nobody_answers_fails_its_step() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, {"uses": "ask"})
    trial.heard.replies = [None]
    run = trial.run()
    assert (run.state, run.code, run.message) == (
        ExecutionState.TIMED_OUT, "TIMEOUT", "Nobody answered.",
    )  # fmt: skip
    assert states(run) == [StepState.FAILED, StepState.SKIPPED]
    assert run.steps[0].output is None


def test_a_retry_asks_again() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask", "on_failure": "retry"})
    trial.heard.replies = [None, yes()]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert trial.uses == ["ask", "ask"]
    assert run.steps[0].attempt == 2
    assert trial.heard.states == [
        "s0#1 suspended", "asks Pay?", "s0#1 retrying", "waits",
        "s0#2 suspended", "asks Pay?", "s0#2 succeeded",
    ]  # fmt: skip


def test_a_recovery_node_runs_when_nobody_answers() -> None:
    recover = {"uses": "echo", "with": {"approved": False, "why": "${error.code}"}}
    trial = Trial(
        {"ask": asking(), "echo": echo},
        {"uses": "ask", "on_failure": "recover", "recover": recover},
    )
    trial.heard.replies = [None]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert run.steps[0].output == {"approved": False, "why": "TIMEOUT"}
    assert (run.steps[0].code, run.steps[0].attempt) == ("TIMEOUT", 2)


def test_a_recovery_node_may_ask() -> None:
    trial = Trial(
        {"bad": fails(Code.UNKNOWN_ERROR, "broken"), "ask": asking("Go on all the same?")},
        {"uses": "bad", "on_failure": "recover", "recover": {"uses": "ask"}},
    )
    trial.heard.replies = [yes()]
    run = trial.run()
    step = run.steps[0]
    assert (run.state, step.state, step.code) == (
        ExecutionState.SUCCEEDED, StepState.SUCCEEDED, "UNKNOWN_ERROR",
    )  # fmt: skip
    assert step.output == {"approved": True, "by": "ada", "comment": ""}
    trial.heard.replies = [None]
    run = trial.run()
    assert (run.state, run.code) == (ExecutionState.FAILED, "UNKNOWN_ERROR")


def test_cancelled_while_a_person_is_asked() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, {"uses": "ask"})

    def cancel(step: str, question: str, expires_s: float) -> None:
        trial.cancelled.set()

    trial.heard.asks = cancel  # type: ignore[method-assign]  # somebody presses Ctrl-C meanwhile
    run = trial.run()
    assert (run.state, run.code) == (ExecutionState.CANCELLED, "CANCELLED")
    assert states(run) == [StepState.CANCELLED, StepState.CANCELLED]
    assert len(trial.backend.closed) == 1


def test_what_is_sensitive_is_masked_in_a_question_and_in_a_comment() -> None:
    trial = Trial(
        {"ask": asking("Charge 4111-1111?")},
        {"uses": "ask"},
        inputs={"properties": {"card": {"type": "string", "sensitive": True}}},
        given={"card": "4111-1111"},
    )
    trial.heard.replies = [yes("4111-1111 is mine")]
    run = trial.run()
    assert "asks Charge ***?" in trial.heard.states
    assert run.steps[0].output == {"approved": True, "by": "ada", "comment": "*** is mine"}
