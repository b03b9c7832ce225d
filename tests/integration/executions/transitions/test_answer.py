"""The answer of a person, or the end of its time: one of them is written, once, while the run waits for it."""

from functools import partial
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from executions.models import Approval, ApprovalState
from executions.semantics.decisions import StepDecision
from executions.states import ExecutionState, StepState, TicketState
from executions.transitions.answer import ApprovalAnswer, write_answer
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import due_of, everything_of, run_of, step_of, steps_of, ticket_of
from tests.integration.executions.threads import at_once
from tests.integration.executions.transitions.runs import ask, attempt, park

ONWARD = StepDecision(state=StepState.SUCCEEDED, next_step="two")
pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def asked(acme: TenantRef, claimed: Placement) -> Placement:
    """A suspended run, whose first of two steps asks a person."""
    ask(acme, claimed)
    park(acme, claimed)
    return claimed


def write(
    tenant: TenantRef,
    placement: Placement,
    *,
    state: ApprovalState = ApprovalState.APPROVED,
    number: int = 1,
    decided: StepDecision = ONWARD,
    by: str = "ann",
    **fields: Any,
) -> ExecutionState | None:
    answer = ApprovalAnswer(
        execution_id=placement.execution_id, number=number, state=state, by=by, comment="fine"
    )
    with tenant_scope(tenant):
        return write_answer(answer, attempt(**{"version": 1, **fields}), decided)


def let_expire(tenant: TenantRef) -> None:
    with tenant_scope(tenant):
        Approval.objects.update(expires_at=F("asked_at"))


def test_the_run_is_queued_and_its_question_has_ended(acme: TenantRef, asked: Placement) -> None:
    output = '{"approved": true}'
    assert write(acme, asked, output=output) == ExecutionState.QUEUED
    run, ticket = run_of(acme, asked.execution_id), ticket_of(asked.execution_id)
    assert (run.state, run.next_step, run.version, run.question) == ("queued", "two", 2, "")
    assert (run.wake_at, run.outcome, run.finished_at) == (None, "", None)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    assert due_of(asked.execution_id) is None
    step = step_of(acme, asked.execution_id, "one")
    assert (step.state, step.output, step.attempt) == ("succeeded", {"approved": True}, 1)
    with tenant_scope(acme):
        approval = Approval.objects.get()
    assert (approval.state, approval.answered_by, approval.comment) == ("approved", "ann", "fine")


def test_an_answer_that_ends_the_run_needs_no_placement(acme: TenantRef, asked: Placement) -> None:
    ends = StepDecision(state=StepState.FAILED, next_step="", outcome=ExecutionState.FAILED)
    assert write(acme, asked, decided=ends, run_code="C", outputs="{}") == ExecutionState.FAILED
    run = run_of(acme, asked.execution_id)
    assert (run.state, run.outcome, run.code, run.outputs) == ("failed", "failed", "C", {})
    assert run.finished_at is not None
    assert (ticket_of(asked.execution_id), due_of(asked.execution_id)) == (None, None)
    assert steps_of(acme, asked.execution_id) == {"one": "failed", "two": "skipped"}


def test_a_long_retry_is_waited_for_without_a_slot(acme: TenantRef, asked: Placement) -> None:
    let_expire(acme)
    again = StepDecision(state=StepState.RETRYING, next_step="one", retry_s=90.0)
    expired = ApprovalState.EXPIRED
    assert write(acme, asked, state=expired, decided=again, by="") == ExecutionState.WAITING
    run, ticket, due = (
        run_of(acme, asked.execution_id),
        ticket_of(asked.execution_id),
        due_of(asked.execution_id),
    )
    assert ticket is not None
    assert due is not None
    assert (run.state, ticket.state, due.kind) == ("waiting", TicketState.PARKED, "wake")
    assert (due.at, due.tenant_id) == (run.wake_at, acme.id)


@pytest.mark.parametrize(
    "other",
    [
        {"version": 0},
        {"version": 2},
        {"number": 2},
        {"path": "two"},
        {"state": ApprovalState.EXPIRED},  # its time is not over
    ],
)
def test_what_is_not_the_open_question_is_not_answered(
    acme: TenantRef, asked: Placement, other: dict[str, Any]
) -> None:
    before = everything_of(acme)
    assert write(acme, asked, **other) is None
    assert everything_of(acme) == before


def test_an_answer_after_its_time_is_refused(acme: TenantRef, asked: Placement) -> None:
    let_expire(acme)
    before = everything_of(acme)
    assert write(acme, asked) is None
    assert everything_of(acme) == before


def test_while_the_context_is_open_nobody_can_answer(acme: TenantRef, claimed: Placement) -> None:
    ask(acme, claimed)
    with tenant_scope(acme):
        Approval.objects.create(
            execution_id=claimed.execution_id, number=1, step="one", prompt="?", asked_at=Now(),
            expires_at="2999-01-01T00:00:00Z",
        )  # fmt: skip
    before = everything_of(acme)
    assert write(acme, claimed) is None
    assert everything_of(acme) == before


def test_of_two_at_once_one_is_written(acme: TenantRef, asked: Placement) -> None:
    both = at_once([partial(write, acme, asked, by="ann"), partial(write, acme, asked, by="bob")])
    assert sorted(both, key=str) == [None, ExecutionState.QUEUED]
    assert write(acme, asked) is None


def test_another_tenant_cannot_answer(acme: TenantRef, globex: TenantRef, asked: Placement) -> None:
    before = everything_of(acme)
    assert write(globex, asked) is None
    assert everything_of(acme) == before
