"""The end of a placement: closed when the run has an outcome, handed back when it has none, fenced either way."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

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
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
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

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def claimed(acme: TenantRef, machine: WorkerBoot) -> Placement:
    """A run whose first of two steps is claimed."""
    placement = make_placed(acme, machine)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
    return placement


def fail(tenant: TenantRef, placement: Placement, code: Code) -> None:
    """Write the checkpoint of a first step that failed."""
    result = StepResult.failed(step="one", attempt=1, code=code, message="")
    with tenant_scope(tenant):
        assert write_checkpoint(
            placement, record(result), after_step(plan(document()), result, seed=7)
        )


def close(tenant: TenantRef, placement: Placement) -> ExecutionState | None:
    with tenant_scope(tenant):
        return close_execution(placement)


def give_back(
    tenant: TenantRef, placement: Placement, *, lost: bool = True
) -> ExecutionState | None:
    with tenant_scope(tenant):
        return hand_back(placement, PlacementEnd(reason=EndReason.WORKER_LOST, lost=lost))


def time_out(tenant: TenantRef, placement: Placement) -> bool:
    with tenant_scope(tenant):
        return set_outcome(placement, ExecutionState.TIMED_OUT, code=Code.TIMEOUT, message="")


# --- close
@pytest.mark.parametrize(
    ("code", "ended", "steps"),
    [
        (Code.UNKNOWN_ERROR, "failed", {"one": "failed", "two": "skipped"}),
        (Code.TIMEOUT, "timed_out", {"one": "failed", "two": "skipped"}),
        (Code.CANCELLED, "cancelled", {"one": "cancelled", "two": "cancelled"}),
    ],
)
def test_closing_makes_the_run_terminal_and_frees_the_slot(
    acme: TenantRef, claimed: Placement, code: Code, ended: str, steps: dict[str, str]
) -> None:
    fail(acme, claimed, code)
    assert close(acme, claimed) == ended
    run = run_of(acme, claimed.execution_id)
    assert (run.state, run.next_step) == (ended, "")
    assert run.finished_at is not None
    assert steps_of(acme, claimed.execution_id) == steps
    assert ticket_of(claimed.execution_id) is None
    assert events_of(acme, claimed.execution_id)[-1] == f"execution.{ended}"


def test_closing_twice_writes_once(acme: TenantRef, claimed: Placement) -> None:
    fail(acme, claimed, Code.TIMEOUT)
    close(acme, claimed)
    before = everything_of(acme)
    assert close(acme, claimed) is None
    assert everything_of(acme) == before


def test_without_an_outcome_nothing_is_closed(acme: TenantRef, claimed: Placement) -> None:
    before = everything_of(acme)
    assert close(acme, claimed) is None
    assert everything_of(acme) == before


@pytest.mark.parametrize("other", [{"epoch": 2}, {"boot": uuid4()}])
def test_another_placement_closes_and_hands_back_nothing(
    acme: TenantRef, claimed: Placement, other: dict[str, object]
) -> None:
    wrong = replace(claimed, **other)  # type: ignore[arg-type]
    before = everything_of(acme)
    assert not give_back(acme, wrong)
    assert everything_of(acme) == before
    fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    assert close(acme, wrong) is None
    assert everything_of(acme) == before


def test_another_tenant_closes_and_hands_back_nothing(
    acme: TenantRef, globex: TenantRef, claimed: Placement
) -> None:
    assert not give_back(globex, claimed)
    fail(acme, claimed, Code.TIMEOUT)
    assert close(globex, claimed) is None
    assert run_of(acme, claimed.execution_id).state == ExecutionState.RUNNING


# --- hand back
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


def test_a_run_that_was_never_claimed_is_handed_back_too(
    acme: TenantRef, machine: WorkerBoot
) -> None:
    placement = make_placed(acme, machine)
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
    acme: TenantRef, machine: WorkerBoot, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    """When it began to look, the step was not claimed yet."""
    placement = make_placed(acme, machine)
    with tenant_scope(acme), transaction.atomic():
        assert isinstance(claim_step(placement, "one", worker="w1@test"), Claim)
        other = in_thread(lambda: give_back(acme, placement))
        wait_until_blocked(superuser)
    assert other.result(timeout=20) == ExecutionState.QUEUED
    assert steps_of(acme, placement.execution_id) == {"one": "pending", "two": "pending"}
    assert step_of(acme, placement.execution_id, "one").attempt == 0


def test_an_outcome_waits_for_a_claim_under_way_and_ends_its_step(
    acme: TenantRef, machine: WorkerBoot, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    placement = make_placed(acme, machine)
    with tenant_scope(acme), transaction.atomic():
        assert isinstance(claim_step(placement, "one", worker="w1@test"), Claim)
        other = in_thread(lambda: time_out(acme, placement))
        wait_until_blocked(superuser)
    assert other.result(timeout=20)
    assert close(acme, placement) == ExecutionState.TIMED_OUT
    assert steps_of(acme, placement.execution_id) == {"one": "failed", "two": "skipped"}
    assert "step.failed" in events_of(acme, placement.execution_id)


def test_a_question_that_is_being_written_suspends_the_run_when_others_end_its_placement(
    acme: TenantRef, claimed: Placement, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """Whoever ends it has looked before the checkpoint was there, and must not go by what it saw."""
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
def test_a_cut_attempt_is_not_used_up_and_its_costs_are_said_to_be_unbilled(
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
        "epoch": 1, "reason": EndReason.WORKER_LOST, "unbilled": True, "worker": "w1@test",
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
        "worker": "w1@test",
        "reason": EndReason.WORKER_LOST,
    }  # its attempt has been billed


def test_the_time_that_is_left_is_kept_for_the_next_placement(
    acme: TenantRef, machine: WorkerBoot, claimed: Placement
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
        place(acme, claimed.execution_id, machine)


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


# --- restart
def test_a_restart_raises_the_epoch_and_keeps_slot_and_deadline(
    acme: TenantRef, claimed: Placement
) -> None:
    before = ticket_of(claimed.execution_id)
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.WORKER_STOPPED) == 2
    after = ticket_of(claimed.execution_id)
    assert before is not None
    assert after is not None
    assert (after.state, after.worker_id, after.epoch) == (TicketState.PLACED, claimed.boot, 2)
    assert after.deadline == before.deadline
    assert events_of(acme, claimed.execution_id)[-1] == "context.restarted"
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.WORKER_STOPPED) is None


def test_nothing_is_restarted_that_is_to_be_cancelled_is_over_or_waits(
    acme: TenantRef, globex: TenantRef, machine: WorkerBoot
) -> None:
    cancelled, over, waiting, foreign = (make_placed(acme, machine) for _ in range(4))
    with tenant_scope(acme):
        cancel(cancelled.execution_id, message="")
        set_outcome(over, ExecutionState.FAILED, code="", message="")
        Execution.objects.filter(pk=waiting.execution_id).update(wake_at=Now())
        before = everything_of(acme)
        for placement in (cancelled, over, waiting):
            assert restart(placement, reason=EndReason.WORKER_STOPPED) is None
    with tenant_scope(globex):
        assert restart(foreign, reason=EndReason.WORKER_STOPPED) is None
    assert everything_of(acme) == before


# --- outcome without a link
def test_an_outcome_for_a_run_in_which_no_link_is_active(
    acme: TenantRef, claimed: Placement
) -> None:
    with tenant_scope(acme):
        assert set_outcome(
            claimed, ExecutionState.CANCELLED, code=Code.CANCELLED, message="by test"
        )
    run = run_of(acme, claimed.execution_id)
    assert (run.outcome, run.code, run.message) == ("cancelled", "CANCELLED", "by test")
    assert run.state == ExecutionState.RUNNING
    assert steps_of(acme, claimed.execution_id) == {"one": "cancelled", "two": "pending"}
    assert close(acme, claimed) == ExecutionState.CANCELLED
    assert steps_of(acme, claimed.execution_id)["two"] == StepState.CANCELLED


@pytest.mark.parametrize("state", [StepState.RUNNING, StepState.RETRYING])
@pytest.mark.parametrize("outcome", [ExecutionState.CANCELLED, ExecutionState.FAILED])
def test_the_step_that_it_ends_has_an_event_of_its_own(
    acme: TenantRef, claimed: Placement, outcome: ExecutionState, state: StepState
) -> None:
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=state, retry_at=Now() + timedelta(seconds=30))
        assert set_outcome(claimed, outcome, code="WORKER_LOST", message="")
        event = ExecutionEvent.objects.order_by("sequence").last()
    assert event is not None
    assert (event.kind, event.step) == (f"step.{outcome.value}", "one")
    cut = {"unbilled": True} if state is StepState.RUNNING else {}
    assert event.data == {"attempt": 1, "code": "WORKER_LOST", **cut}
    assert step_of(acme, claimed.execution_id, "one").retry_at is None
    assert close(acme, claimed) == outcome
    assert events_of(acme, claimed.execution_id)[-1] == f"execution.{outcome.value}"


def test_without_a_step_at_work_it_has_none(acme: TenantRef, machine: WorkerBoot) -> None:
    placement = make_placed(acme, machine)
    with tenant_scope(acme):
        assert set_outcome(placement, ExecutionState.CANCELLED, code="", message="")
    assert events_of(acme, placement.execution_id) == ["execution.queued"]


@pytest.mark.parametrize("stale", [False, True])
def test_an_outcome_is_neither_replaced_nor_set_from_an_old_placement(
    acme: TenantRef, claimed: Placement, stale: bool
) -> None:
    if stale:
        give_back(acme, claimed)
    else:
        fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not set_outcome(claimed, ExecutionState.CANCELLED, code="", message="")
    assert everything_of(acme) == before
