"""Answering: once, by the run's own tenant, and the run goes on with the answer; what nobody answers fails its step."""

import json
import logging
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from executions.models import Approval, Execution, ExecutionEvent, Step
from executions.placement.admission import admit
from executions.selectors import execution
from executions.semantics.replies import Reply
from executions.services import approvals
from executions.services.approvals import AlreadyAnswered, answer, expire
from executions.services.executions import request_cancel
from executions.services.waking import wake_due
from executions.states import ExecutionState, TicketState
from executions.transitions.fence import Placement
from executions.worker.links import Links
from executions.worker.machine import Machine
from isolane.results import Code
from orchestrator.core.errors import InvalidInput, NotFound
from orchestrator.core.logs import JsonFormatter
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    due_of,
    events_of,
    everything_of,
    make_machine,
    place,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.threads import at_once
from tests.integration.executions.worker.driving import (
    asking,
    drive,
    echo,
    let_its_time_come,
    run_link,
    runs_of,
    script,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

YES = Reply(approved=True, by="user:ann", comment="fine")
NO = Reply(approved=False, by="user:bob")
ASKS = {"uses": "ask"}
NEXT = {"when": "${steps.s1.approved}", "with": {"by": "${steps.s1.by}"}}
Suspend = Callable[..., Placement]


@pytest.fixture
def machine(database: None) -> Machine:
    """One whose nodes ask, fail, mend and work."""
    nodes = {name: succeeds(None) for name in ("ask", "flaky", "mend", "work")}
    return make_machine(script=nodes)


@pytest.fixture
def suspended(acme: TenantRef, machine: Machine, links: Links) -> Suspend:
    """Runs whose first step asks a person."""
    script(machine, ask=asking(), work=echo)

    def suspend(*steps: dict[str, Any], **fields: Any) -> Placement:
        placement = start(acme, machine, *(steps or (ASKS, NEXT)), **fields)
        run_link(links, placement, "s1")
        assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED
        return placement

    return suspend


def public_id(placement: Placement) -> str:
    return f"exec_{placement.execution_id}"


def approval_of(tenant: TenantRef, placement: Placement, number: int = 1) -> Approval:
    with tenant_scope(tenant):
        return Approval.objects.get(execution_id=placement.execution_id, number=number)


# --- answers
def test_an_approval_lets_the_run_go_on_with_who_said_what(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    placement = suspended()
    answered = answer(acme, public_id(placement), 1, YES)
    assert (answered.state, answered.answered_by, answered.comment) == (
        "approved", "user:ann", "fine",
    )  # fmt: skip
    run, ticket = run_of(acme, placement.execution_id), ticket_of(placement.execution_id)
    assert ticket is not None
    assert (run.state, run.question, run.wake_at, run.next_step) == ("queued", "", None, "s2")
    assert (ticket.state, due_of(placement.execution_id)) == (TicketState.WAITING, None)
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.finished_at is None) == ("succeeded", False)
    assert step.output == {"approved": True, "by": "user:ann", "comment": "fine"}
    assert events_of(acme, placement.execution_id)[-2:] == ["step.succeeded", "execution.queued"]
    with tenant_scope(acme):
        told = ExecutionEvent.objects.get(
            execution_id=placement.execution_id, kind="step.succeeded"
        )
    assert told.data == {"actor": "user:ann", "approval": 1, "attempt": 1}

    (placed,) = admit()
    again = Placement(
        tenant_id=acme.id, execution_id=placed.execution_id, epoch=placed.epoch, boot=placed.boot
    )
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert [(run.step, run.parameters) for run in runs_of(machine, placement)] == [
        ("s1", {}), ("s2", {"by": "user:ann"}),
    ]  # fmt: skip


def test_a_rejection_is_an_answer_that_later_steps_look_at(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    placement = suspended(ASKS, NEXT, {})
    assert answer(acme, public_id(placement), 1, NO).state == "rejected"
    again = place(acme, placement.execution_id, machine)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert steps_of(acme, placement.execution_id) == {
        "s1": "succeeded", "s2": "skipped", "s3": "succeeded",
    }  # fmt: skip


def test_with_nothing_left_the_answer_ends_the_run_without_a_placement(
    acme: TenantRef, suspended: Suspend
) -> None:
    placement = suspended(ASKS, outputs={"ok": "${steps.s1.approved}"})
    answer(acme, public_id(placement), 1, NO)
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.outcome, run.outputs) == ("succeeded", "succeeded", {"ok": False})
    assert run.finished_at is not None
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert events_of(acme, placement.execution_id)[-1] == "execution.succeeded"


def test_outputs_that_cannot_be_resolved_fail_the_run_at_its_answer(
    acme: TenantRef, suspended: Suspend
) -> None:
    placement = suspended(ASKS, outputs={"n": "${length(steps.s1.approved)}"})
    answer(acme, public_id(placement), 1, YES)
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == ("failed", "POLICY_VIOLATION")
    assert ticket_of(placement.execution_id) is None


def test_a_second_question_has_a_number_of_its_own(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    placement = suspended(ASKS, ASKS)
    answer(acme, public_id(placement), 1, YES)
    again = place(acme, placement.execution_id, machine)
    run_link(links, again, "s2")
    assert (approval_of(acme, placement, 2).step, approval_of(acme, placement, 2).state) == (
        "s2", "open",
    )  # fmt: skip
    # Who looked at the first question answers the first one, and not the one that is open now.
    with pytest.raises(AlreadyAnswered, match="approved by user:ann"):
        answer(acme, public_id(placement), 1, NO)
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED
    answer(acme, public_id(placement), 2, NO)
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


def test_the_same_answer_again_changes_nothing_and_another_is_refused(
    acme: TenantRef, suspended: Suspend
) -> None:
    placement = suspended()
    answer(acme, public_id(placement), 1, YES)
    before = everything_of(acme)
    assert answer(acme, public_id(placement), 1, YES).state == "approved"
    for other in (NO, Reply(approved=True, by="user:bob")):
        with pytest.raises(AlreadyAnswered) as refused:
            answer(acme, public_id(placement), 1, other)
        assert refused.value.code == "already_answered"
    assert everything_of(acme) == before


def test_of_answers_at_the_same_moment_one_is_taken(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()

    def try_to(reply: Reply) -> Callable[[], str]:
        def work() -> str:
            try:
                return str(answer(acme, public_id(placement), 1, reply).state)
            except AlreadyAnswered:
                return "refused"

        return work

    replies = [Reply(approved=n % 2 == 0, by=f"user:{n}") for n in range(4)]
    said = at_once([try_to(reply) for reply in replies])
    assert said.count("refused") == 3
    asked = approval_of(acme, placement)
    assert asked.state in said
    assert events_of(acme, placement.execution_id).count("step.succeeded") == 1


def test_a_run_that_ended_meanwhile_cannot_be_answered(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
        asked = Step.objects.get(execution_id=placement.execution_id, path="s1")
    assert (asked.state, asked.code, asked.message) == (
        "cancelled",
        "CANCELLED",
        "Cancelled by ann.",
    )
    assert events_of(acme, placement.execution_id)[-2:] == ["step.cancelled", "execution.cancelled"]
    before = everything_of(acme)
    with pytest.raises(AlreadyAnswered, match="ended"):
        answer(acme, public_id(placement), 1, YES)
    assert everything_of(acme) == before


@pytest.mark.parametrize(
    ("comment", "reason"), [("x" * 2001, "2001 characters"), ("a\x00b", "comment")]
)
def test_a_comment_that_cannot_be_kept_is_refused(
    acme: TenantRef, suspended: Suspend, comment: str, reason: str
) -> None:
    placement = suspended()
    with pytest.raises(InvalidInput, match=reason) as refused:
        answer(acme, public_id(placement), 1, Reply(approved=True, by="ann", comment=comment))
    assert refused.value.field == "comment"
    assert approval_of(acme, placement).state == "open"


def test_what_is_not_there_is_not_found(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()
    for number in (2, 2**70):
        with pytest.raises(NotFound, match=f"no approval {number}"):
            answer(acme, public_id(placement), number, YES)


# --- whose
def test_another_tenants_run_is_refused_before_its_memory_is_read_and_the_refusal_is_logged(
    acme: TenantRef,
    globex: TenantRef,
    suspended: Suspend,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = suspended()
    before = everything_of(acme)

    def read(*_: object) -> None:
        raise AssertionError("its memory was read")

    for reader in ("resumable", "find_execution"):
        monkeypatch.setattr(approvals, reader, read)
    with caplog.at_level(logging.WARNING), pytest.raises(NotFound):
        answer(globex, public_id(placement), 1, YES)
    (warning,) = [found for found in caplog.records if found.name == approvals.__name__]
    assert warning.levelno == logging.WARNING
    told = json.loads(JsonFormatter().format(warning))
    expected = {
        "event": "CROSS_TENANT_ANSWER",
        "execution_id": str(placement.execution_id),
        "tenant_id": globex.schema,
        "actor": YES.by,
    }
    assert told.items() >= expected.items()
    assert everything_of(acme) == before


def test_the_refusal_says_no_more_than_of_a_run_that_is_not_there(
    acme: TenantRef, globex: TenantRef, suspended: Suspend
) -> None:
    placement = suspended()
    said = []
    nobody = "00000000-0000-0000-0000-000000000000"
    for known in (
        public_id(placement), f"exec_{nobody}", str(placement.execution_id), nobody,
    ):  # fmt: skip
        with pytest.raises(NotFound) as refused:
            answer(globex, known, 1, YES)
        problem = refused.value
        said.append((problem.code, problem.field, problem.detail.replace(known, "ID")))
    assert len(set(said)) == 1
    assert acme.schema not in str(said)


def test_out_of_reach_is_not_found(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()
    with pytest.raises(NotFound):
        answer(acme, public_id(placement), 1, YES, reach=frozenset({"other"}))
    assert approval_of(acme, placement).state == "open"


# --- silence
def test_what_nobody_answers_fails_its_step_and_under_abort_the_run(
    acme: TenantRef, suspended: Suspend
) -> None:
    placement = suspended()
    assert let_its_time_come(acme, placement) == 1
    run, step = run_of(acme, placement.execution_id), step_of(acme, placement.execution_id, "s1")
    assert (run.state, run.code) == ("timed_out", "TIMEOUT")
    assert (step.state, step.code) == ("failed", "TIMEOUT")
    assert step.message.startswith("Nobody answered by ")
    assert steps_of(acme, placement.execution_id)["s2"] == "skipped"
    asked = approval_of(acme, placement)
    assert (asked.state, asked.answered_by, asked.answered_at is None) == ("expired", "", False)
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert wake_due() == 0


def test_silence_is_a_failure_that_continue_passes(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    placement = suspended({**ASKS, "on_failure": "continue"}, NEXT)
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, machine)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert steps_of(acme, placement.execution_id) == {"s1": "failed", "s2": "skipped"}


def test_retry_asks_again(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    placement = suspended({**ASKS, "on_failure": "retry"}, NEXT)
    let_its_time_come(acme, placement)
    run, step = run_of(acme, placement.execution_id), step_of(acme, placement.execution_id, "s1")
    assert (run.state, step.state, step.attempt) == ("queued", "retrying", 1)
    assert step.retry_at is not None
    let_its_time_come(acme, placement)  # the backoff's
    again = place(acme, placement.execution_id, machine)
    run_link(links, again, "s1")
    asked = approval_of(acme, placement, 2)
    assert (asked.state, asked.step) == ("open", "s1")
    assert step_of(acme, placement.execution_id, "s1").attempt == 2
    answer(acme, public_id(placement), 2, YES)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_a_long_backoff_after_silence_is_waited_for_without_a_slot(
    acme: TenantRef, suspended: Suspend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TIMEOUT: 61_000})
    placement = suspended({**ASKS, "on_failure": "retry"}, NEXT)
    let_its_time_come(acme, placement)
    run, ticket = run_of(acme, placement.execution_id), ticket_of(placement.execution_id)
    due = due_of(placement.execution_id)
    assert ticket is not None
    assert due is not None
    assert (run.state, ticket.state, due.kind) == ("waiting", TicketState.PARKED, "wake")
    assert due.at == run.wake_at
    let_its_time_come(acme, placement)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_recover_runs_its_node_after_silence(
    acme: TenantRef, machine: Machine, links: Links, suspended: Suspend
) -> None:
    script(machine, mend=echo)
    recover = {"uses": "mend", "with": {"why": "${error.code}"}}
    placement = suspended({**ASKS, "on_failure": "recover", "recover": recover}, NEXT)
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, machine)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.output) == ("succeeded", "TIMEOUT", {"why": "TIMEOUT"})


def test_a_recovery_node_may_ask_and_the_step_keeps_what_it_failed_with(
    acme: TenantRef, machine: Machine, links: Links
) -> None:
    script(machine, ask=asking(), flaky=fails(Code.UNKNOWN_ERROR, "broke"), work=echo)
    placement = start(
        acme, machine, {"uses": "flaky", "on_failure": "recover", "recover": {"uses": "ask"}}, NEXT
    )
    run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED
    answer(acme, public_id(placement), 1, YES)
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.message, step.cause) == (
        "succeeded", "UNKNOWN_ERROR", "broke", "recovered",
    )  # fmt: skip
    assert step.output == YES.output


def test_an_answer_that_comes_too_late_is_refused_though_nobody_has_noted_the_end(
    acme: TenantRef, suspended: Suspend, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    placement = suspended()
    superuser.execute(
        f"UPDATE {acme.schema}.executions_approval SET expires_at = now() - interval '1 second'"
    )
    with pytest.raises(AlreadyAnswered, match="time to be answered is over"):
        answer(acme, public_id(placement), 1, YES)
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED


def test_nothing_expires_before_its_time_or_twice(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not expire(acme.id, placement.execution_id)
    assert everything_of(acme) == before
    let_its_time_come(acme, placement)
    with tenant_scope(acme):
        assert not expire(acme.id, placement.execution_id)


# --- what is sensitive
def test_what_is_sensitive_is_masked_in_the_question_and_in_the_answer(
    acme: TenantRef, machine: Machine, links: Links
) -> None:
    script(machine, ask=asking("Use hunter2 for it?"), work=echo)
    placement = start(
        acme,
        machine,
        {"uses": "ask", "sensitive": ["comment"]},
        {"with": {"said": "${steps.s1.comment}"}},
        given={"password": "hunter2"},
        inputs={"properties": {"password": {"type": "string", "sensitive": True}}},
    )
    run_link(links, placement, "s1")
    asked = approval_of(acme, placement)
    assert asked.prompt == "Use *** for it?"
    reply = Reply(approved=True, by="user:ann", comment="the pin is 9917 4411")
    answer(acme, public_id(placement), 1, reply)
    assert approval_of(acme, placement).comment == "***"
    with tenant_scope(acme):
        rows = json.dumps(list(Execution.objects.values()), default=str)
        shown = execution(public_id(placement))
        rows += json.dumps(list(shown.steps.values()), default=str)
    assert "9917" not in rows
    assert "hunter2" not in rows
    again = place(acme, placement.execution_id, machine)
    drive(acme, links, again)
    assert runs_of(machine, placement)[-1].parameters == {"said": "the pin is 9917 4411"}
