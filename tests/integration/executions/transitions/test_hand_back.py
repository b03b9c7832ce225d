"""Handing back: a run without outcome is queued again, waits or is suspended; fenced, and nothing is lost."""

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from executions.blueprints.plan import plan
from executions.models import Approval, Execution, ExecutionEvent, Step
from executions.placement.models import Ticket
from executions.semantics.decisions import after_step
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, StepState, TicketState
from executions.transitions.cancel import cancel
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import Claim, claim_step
from executions.worker.boot import WorkerBoot
from isolane.results import Code, StepResult
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    document,
    due_of,
    events_of,
    everything_of,
    make_placed,
    place,
    record,
    run_of,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.threads import in_thread
from tests.integration.executions.transitions.conftest import WORKER
from tests.integration.executions.transitions.runs import close, fail, give_back

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.mark.parametrize("lost", [True, False])
def test_handing_back_raises_the_epoch_and_resets_the_running_step(
    acme: TenantRef, claimed: Placement, lost: bool
) -> None:
    waiting_since = getattr(ticket_of(claimed.execution_id), "waiting_since", None)
    assert give_back(acme, claimed, lost=lost)
    ticket = ticket_of(claimed.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.worker_id, ticket.epoch) == (TicketState.WAITING, None, 2)
    # A drained run keeps its place in the queue; a lost one, which may be to blame, goes to its end.
    assert (ticket.waiting_since == waiting_since) is not lost
    assert run_of(acme, claimed.execution_id).losses == int(lost)
    assert run_of(acme, claimed.execution_id).state == ExecutionState.QUEUED
    assert steps_of(acme, claimed.execution_id) == {"one": "pending", "two": "pending"}
    kind = "placement.lost" if lost else "placement.handed_over"
    assert events_of(acme, claimed.execution_id)[-1] == kind


def test_a_run_that_was_never_claimed_is_handed_back_too(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = make_placed(acme, boot)
    assert give_back(acme, placement)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_steps_that_are_done_stay_done(acme: TenantRef, claimed: Placement) -> None:
    result = StepResult.succeeded(step="one", attempt=1, output={"n": 1})
    with tenant_scope(acme):
        write_checkpoint(claimed, record(result), after_step(plan(document()), result, seed=7))
    assert give_back(acme, claimed)
    assert steps_of(acme, claimed.execution_id) == {"one": "succeeded", "two": "pending"}
    assert run_of(acme, claimed.execution_id).next_step == "two"


def test_a_run_with_an_outcome_is_not_handed_back(acme: TenantRef, claimed: Placement) -> None:
    fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    assert not give_back(acme, claimed)
    assert everything_of(acme) == before


def test_a_run_that_is_to_be_cancelled_is_not_handed_back(
    acme: TenantRef, claimed: Placement
) -> None:
    """Admission would never place it again and nobody would end it."""
    with tenant_scope(acme):
        cancel(claimed.execution_id, message="")
    before = everything_of(acme)
    assert not give_back(acme, claimed)
    assert everything_of(acme) == before


def test_handing_back_waits_for_a_checkpoint_under_way_and_sees_its_outcome(
    acme: TenantRef, claimed: Placement, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    """The reaper comes while the lapsed worker's last checkpoint is being committed."""
    with tenant_scope(acme), transaction.atomic():
        result = StepResult.failed(step="one", attempt=1, code=Code.TIMEOUT, message="")
        assert write_checkpoint(
            claimed, record(result), after_step(plan(document()), result, seed=7)
        )
        other = in_thread(lambda: give_back(acme, claimed))
        wait_until_blocked(superuser)
    assert not other.result(timeout=20)
    assert close(acme, claimed) == ExecutionState.TIMED_OUT


def test_handing_back_waits_for_a_claim_under_way_and_resets_its_step(
    acme: TenantRef, boot: WorkerBoot, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    """When it began to look, the step was not claimed yet."""
    placement = make_placed(acme, boot)
    with tenant_scope(acme), transaction.atomic():
        assert isinstance(claim_step(placement, "one", worker="w1@test"), Claim)
        other = in_thread(lambda: give_back(acme, placement))
        wait_until_blocked(superuser)
    assert other.result(timeout=20) == ExecutionState.QUEUED
    assert steps_of(acme, placement.execution_id) == {"one": "pending", "two": "pending"}
    assert step_of(acme, placement.execution_id, "one").attempt == 0


def test_a_question_that_is_being_written_suspends_the_run_when_others_end_its_placement(
    acme: TenantRef, claimed: Placement, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """The worker that ends it looked before the checkpoint was there, and must not go by what it saw."""
    result = StepResult.succeeded(step="one", attempt=1, output=None, pause_s=3600, question="Pay?")
    with tenant_scope(acme), transaction.atomic():
        decided = after_step(plan(document()), result, seed=7)
        assert write_checkpoint(claimed, record(result, question="Pay?"), decided)
        other = in_thread(lambda: give_back(acme, claimed))
        wait_until_blocked(superuser)
    assert other.result(timeout=20) == ExecutionState.SUSPENDED
    assert steps_of(acme, claimed.execution_id) == {"one": "suspended", "two": "pending"}
    due = due_of(claimed.execution_id)
    assert due is not None
    assert due.kind == "approval"
    with tenant_scope(acme):
        assert Approval.objects.get().prompt == "Pay?"


# --- what a placement leaves for the next one
@pytest.mark.parametrize("lost", [True, False])
def test_an_interrupted_attempt_is_not_used_up_and_its_costs_are_said_to_be_unbilled(
    acme: TenantRef, claimed: Placement, lost: bool
) -> None:
    assert give_back(acme, claimed, lost=lost)
    assert step_of(acme, claimed.execution_id, "one").attempt == 0
    with tenant_scope(acme):
        event = ExecutionEvent.objects.order_by("sequence").last()
    assert event is not None
    kind = "placement.lost" if lost else "placement.handed_over"
    assert (event.kind, event.step) == (kind, "one")
    assert event.data == {
        "epoch": 1, "reason": EndReason.WORKER_LOST, "worker": WORKER, "unbilled": True,
    }  # fmt: skip


def test_a_retrying_step_keeps_its_attempt_its_time_and_its_recovery(
    acme: TenantRef, claimed: Placement
) -> None:
    retry_at = timezone.now() + timedelta(seconds=30)
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(
            state=StepState.RETRYING, attempt=2, retry_at=retry_at, recovering=True
        )
    assert give_back(acme, claimed)
    step = step_of(acme, claimed.execution_id, "one")
    assert (step.state, step.attempt) == (StepState.PENDING, 2)
    assert (step.retry_at, step.recovering) == (retry_at, True)
    with tenant_scope(acme):
        event = ExecutionEvent.objects.order_by("sequence").last()
    assert event is not None
    assert event.data == {
        "epoch": 1,
        "reason": EndReason.WORKER_LOST,
        "worker": WORKER,
    }  # its attempt has been billed


def test_the_time_that_is_left_is_kept_for_the_next_placement(
    acme: TenantRef, boot: WorkerBoot, claimed: Placement
) -> None:
    for left in (1000, 500):
        with tenant_scope(acme):
            Ticket.objects.update(deadline=Now() + timedelta(seconds=left))
        assert give_back(
            acme, replace(claimed, epoch=getattr(ticket_of(claimed.execution_id), "epoch", 0))
        )
        ticket = ticket_of(claimed.execution_id)
        assert ticket is not None
        assert left - 20 < ticket.time_left <= left
        assert ticket.deadline is None
        place(acme, claimed.execution_id, boot)


def test_a_run_that_is_overdue_has_no_time_left(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        Ticket.objects.update(deadline=Now() - timedelta(seconds=5))
    assert give_back(acme, claimed)
    assert getattr(ticket_of(claimed.execution_id), "time_left", None) == 0


@pytest.mark.parametrize("lost", [True, False])
def test_a_run_that_waits_for_a_time_is_parked_whoever_ends_its_placement(
    acme: TenantRef, claimed: Placement, lost: bool
) -> None:
    wake_at = timezone.now() + timedelta(hours=1)
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=StepState.SUCCEEDED)
        Execution.objects.update(wake_at=wake_at, next_step="two")
    assert give_back(acme, claimed, lost=lost)
    ticket, due = ticket_of(claimed.execution_id), due_of(claimed.execution_id)
    assert ticket is not None
    assert due is not None
    assert (ticket.state, ticket.worker_id, ticket.epoch) == (TicketState.PARKED, None, 2)
    assert (due.tenant_id, due.kind, due.at) == (acme.id, "wake", wake_at)
    assert run_of(acme, claimed.execution_id).state == ExecutionState.WAITING
    assert events_of(acme, claimed.execution_id)[-1] == "execution.waiting"


def test_a_run_that_never_began_has_no_time_to_wait_for(acme: TenantRef, placed: Placement) -> None:
    """It would become waiting without having run."""
    with tenant_scope(acme):
        Execution.objects.update(wake_at=Now())
    before = everything_of(acme)
    assert give_back(acme, placed) is None
    assert everything_of(acme) == before
