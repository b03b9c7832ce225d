"""executions.semantics.attempt: questions to a person, and the effect of their answers."""

import json
from typing import Any

from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt import Attempt
from executions.semantics.masking import MASK
from executions.states import ExecutionState, StepState
from isolane.results import Code, StepResult
from tests.unit.executions.semantics.attempt.runs import BROKE, hiding, make_run


def asked(**more: Any) -> StepResult:
    return StepResult.succeeded(
        step="one", attempt=1, output=None, pause_s=60.0, question="Use hunter2?", **more
    )


def test_a_question_is_masked_and_comes_to_no_output_yet() -> None:
    run = hiding({}, {})
    outcome = Attempt(run, "one", number=1).finish(asked(variables={"v": 1}))
    assert outcome.decided.state is StepState.SUSPENDED
    record = outcome.record
    assert (record.question, record.output, record.code) == (f"Use {MASK}?", None, "")
    assert json.loads(record.variables or "") == {"v": 1}


def test_an_answer_is_the_steps_output_and_silence_its_failure() -> None:
    reply = ApprovalReply(approved=False, by="user:ann", comment="no")
    run = make_run({"on_failure": "continue"}, {})
    answered = Attempt(run, "one", number=1).answered(reply, "Nobody answered.")
    assert json.loads(answered.record.output or "") == reply.output
    assert (answered.decided.state, answered.decided.next_step) == (StepState.SUCCEEDED, "two")
    assert run.memory.output("one") == {"approved": False, "by": "user:ann", "comment": "no"}
    unanswered = Attempt(make_run({}), "one", number=1).answered(None, "Nobody answered.")
    assert (unanswered.result.code, unanswered.record.message) == (
        Code.TIMEOUT, "Nobody answered.",
    )  # fmt: skip
    assert unanswered.decided.outcome is ExecutionState.TIMED_OUT


def test_a_question_within_a_recovery_keeps_the_failure_until_it_is_answered() -> None:
    run = make_run({"on_failure": "recover", "recover": {"uses": "work"}}, {})
    record = Attempt(run, "one", number=2, recovers_from=BROKE).finish(asked()).record
    assert (record.code, record.message, record.cause) == (
        "UNKNOWN_ERROR", "broke", "recovery: asked",
    )  # fmt: skip


def test_a_replayed_deterministic_step_that_asks_is_compared_by_its_answer() -> None:
    reply = ApprovalReply(approved=True, by="user:ann")
    run = make_run({"guarantee": "deterministic"}, original={"one": reply.output})
    attempt = Attempt(run, "one", number=1)
    assert attempt.finish(asked()).result.code is None
    assert attempt.answered(reply, "").result.code is None
    other = Attempt(run, "one", number=1).answered(ApprovalReply(approved=False, by="user:ann"), "")
    assert other.result.code is Code.POLICY_VIOLATION
