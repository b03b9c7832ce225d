"""A run without a platform: questions to a person, answers and silence."""

import pytest

from executions.semantics.approval_reply import ApprovalReply
from executions.states import ExecutionState, StepState
from isolane.results import Code, StepResult
from resources.runtimes.stub import Behaviour, fails, succeeds
from tests.unit.executions.local.trial import Trial, echo, states


def asking(question: str = "Pay?", expires_s: float = 3600.0) -> Behaviour:
    """A node that asks a person."""
    return lambda run, cancelled, on_frame: StepResult.succeeded(
        step=run.step, attempt=run.attempt, output=None, pause_s=expires_s, question=question
    )


def yes(comment: str = "") -> ApprovalReply:
    return ApprovalReply(approved=True, by="ada", comment=comment)


@pytest.mark.parametrize("approved", [True, False])
def test_an_answer_is_the_output_and_the_run_goes_on_in_a_new_context(approved: bool) -> None:
    trial = Trial(
        {"ask": asking(), "pay": succeeds({"paid": True})},
        {"uses": "ask", "with": {"prompt": "Pay?"}},
        {"uses": "pay", "when": "${steps.s0.approved}"},
    )
    trial.events.replies = [ApprovalReply(approved=approved, by="ada", comment="so be it")]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert run.steps[0].output == {"approved": approved, "by": "ada", "comment": "so be it"}
    assert (run.steps[0].inputs, run.steps[0].attempt) == ({"prompt": "Pay?"}, 1)
    assert trial.uses == (["ask", "pay"] if approved else ["ask"])
    assert trial.events.states == [
        "s0#1 suspended", "asks Pay?", "s0#1 succeeded",
        "s1#1 succeeded" if approved else "s1#1 skipped",
    ]  # fmt: skip
    assert [placement.epoch for placement in trial.backend.closed] == ([1, 2] if approved else [1])


def test_while_a_person_is_asked_the_context_is_gone_and_the_runs_time_stands_still() -> None:
    trial = Trial(
        {"ask": asking(), "one": succeeds(1)}, {"uses": "ask"}, {"uses": "one"}, timeout="10s"
    )
    open_contexts = []

    def answer_late(step: str, question: str, expires_s: float) -> ApprovalReply:
        open_contexts.append(len(trial.backend.runs) - len(trial.backend.closed))
        trial.clock.at += 3_000
        return yes()

    trial.events.ask = answer_late  # type: ignore[method-assign]  # somebody takes their time
    assert trial.run().state is ExecutionState.SUCCEEDED
    assert open_contexts == [0]


def test_a_question_at_the_end_ends_the_run_with_its_answer() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, outputs={"ok": "${steps.s0.approved}"})
    trial.events.replies = [yes()]
    run = trial.run()
    assert (run.state, run.outputs) == (ExecutionState.SUCCEEDED, {"ok": True})


def test_a_question_that_nobody_answers_fails_its_step() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, {"uses": "ask"})
    trial.events.replies = [None]
    run = trial.run()
    assert (run.state, run.code, run.message) == (
        ExecutionState.TIMED_OUT, "TIMEOUT", "Nobody answered.",
    )  # fmt: skip
    assert states(run) == [StepState.FAILED, StepState.SKIPPED]
    assert run.steps[0].output is None


def test_a_retry_asks_again() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask", "on_failure": "retry"})
    trial.events.replies = [None, yes()]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert trial.uses == ["ask", "ask"]
    assert run.steps[0].attempt == 2
    assert trial.events.states == [
        "s0#1 suspended", "asks Pay?", "s0#1 retrying", "waits",
        "s0#2 suspended", "asks Pay?", "s0#2 succeeded",
    ]  # fmt: skip


def test_a_recovery_node_runs_when_nobody_answers() -> None:
    recover = {"uses": "echo", "with": {"approved": False, "why": "${error.code}"}}
    trial = Trial(
        {"ask": asking(), "echo": echo},
        {"uses": "ask", "on_failure": "recover", "recover": recover},
    )
    trial.events.replies = [None]
    run = trial.run()
    assert run.state is ExecutionState.SUCCEEDED
    assert run.steps[0].output == {"approved": False, "why": "TIMEOUT"}
    assert (run.steps[0].code, run.steps[0].attempt) == ("TIMEOUT", 2)


def test_a_recovery_node_may_ask() -> None:
    trial = Trial(
        {"bad": fails(Code.UNKNOWN_ERROR, "broken"), "ask": asking("Go on all the same?")},
        {"uses": "bad", "on_failure": "recover", "recover": {"uses": "ask"}},
    )
    trial.events.replies = [yes()]
    run = trial.run()
    step = run.steps[0]
    assert (run.state, step.state, step.code) == (
        ExecutionState.SUCCEEDED, StepState.SUCCEEDED, "UNKNOWN_ERROR",
    )  # fmt: skip
    assert step.output == {"approved": True, "by": "ada", "comment": ""}
    trial.events.replies = [None]
    run = trial.run()
    assert (run.state, run.code) == (ExecutionState.FAILED, "UNKNOWN_ERROR")


def test_cancelled_while_a_person_is_asked() -> None:
    trial = Trial({"ask": asking()}, {"uses": "ask"}, {"uses": "ask"})

    def cancel(step: str, question: str, expires_s: float) -> None:
        trial.cancelled.set()

    trial.events.ask = cancel  # type: ignore[method-assign]  # somebody presses Ctrl-C meanwhile
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
    trial.events.replies = [yes("4111-1111 is mine")]
    run = trial.run()
    assert "asks Charge ***?" in trial.events.states
    assert run.steps[0].output == {"approved": True, "by": "ada", "comment": "*** is mine"}
