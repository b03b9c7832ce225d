"""Answering: once, by the run's own tenant, and the run goes on with the answer."""

import json
import logging
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from executions.models import ExecutionEvent, Step
from executions.placement.admission import admit
from executions.selectors.executions import parse_id
from executions.semantics.approval_reply import ApprovalReply
from executions.services import approvals
from executions.services.approvals import AlreadyAnswered, answer
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from foundation.errors import InvalidInput, NotFound
from foundation.logs import JsonFormatter
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    due_of,
    events_of,
    everything_of,
    place,
    run_of,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.services.approvals.conftest import (
    ASKS,
    NEXT,
    NO,
    YES,
    Suspend,
    approval_of,
    public_id,
)
from tests.integration.executions.threads import at_once
from tests.integration.executions.worker.driving import drive, run_link, runs_of

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


# --- answers
def test_an_approval_lets_the_run_go_on_with_who_said_what(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
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
    assert drive(acme, links, placed).state == ExecutionState.SUCCEEDED
    assert [(run.step, run.parameters) for run in runs_of(boot, placement)] == [
        ("s1", {}), ("s2", {"by": "user:ann"}),
    ]  # fmt: skip


def test_a_rejection_is_an_answer_that_later_steps_look_at(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
) -> None:
    placement = suspended(ASKS, NEXT, {})
    assert answer(acme, public_id(placement), 1, NO).state == "rejected"
    again = place(acme, placement.execution_id, boot)
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
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
) -> None:
    placement = suspended(ASKS, ASKS)
    answer(acme, public_id(placement), 1, YES)
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "s2")
    assert (approval_of(acme, placement, 2).step, approval_of(acme, placement, 2).state) == (
        "s2", "open",
    )  # fmt: skip
    # An answer to the first question is not an answer to the one that is open now.
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
    for other in (NO, ApprovalReply(approved=True, by="user:bob")):
        with pytest.raises(AlreadyAnswered) as refused:
            answer(acme, public_id(placement), 1, other)
        assert refused.value.code == "already_answered"
    assert everything_of(acme) == before


def test_of_answers_at_the_same_moment_one_is_taken(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()

    def try_to(reply: ApprovalReply) -> Callable[[], str]:
        def work() -> str:
            try:
                return str(answer(acme, public_id(placement), 1, reply).state)
            except AlreadyAnswered:
                return "refused"

        return work

    replies = [ApprovalReply(approved=n % 2 == 0, by=f"user:{n}") for n in range(4)]
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
        answer(
            acme, public_id(placement), 1, ApprovalReply(approved=True, by="ann", comment=comment)
        )
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

    for reader in ("read_run", "approval"):
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


def test_the_refusal_asks_the_database_no_more_than_for_a_run_that_is_not_there(
    acme: TenantRef, globex: TenantRef, suspended: Suspend
) -> None:
    theirs, none = public_id(suspended()), f"exec_{uuid4()}"
    asked = []
    for run in (theirs, none):
        with CaptureQueriesContext(connection) as queries, pytest.raises(NotFound):
            answer(globex, run, 1, YES)
        asked.append([query["sql"].replace(parse_id(run).hex, "") for query in queries])
    assert asked[0] == asked[1] != []


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
