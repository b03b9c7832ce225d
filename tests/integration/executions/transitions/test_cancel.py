"""Cancelling: a waiting run ends at once, a placed one is asked to, an ended one is left as it is."""

import pytest
from django.db.models.functions import Now

from executions.models import Execution, ExecutionEvent, Step
from executions.semantics.reasons import EndReason
from executions.services.waking import wake_due
from executions.states import ExecutionState, StepState, TicketState
from executions.submission.cancel import AlreadyEnded, request_cancel
from executions.transitions.cancel import cancel
from executions.transitions.claim import claim_step
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    due_of,
    events_of,
    everything_of,
    make_placed,
    make_run,
    run_of,
    steps_of,
    ticket_of,
)

pytestmark = pytest.mark.usefixtures("neighbour")


def test_a_waiting_run_ends_at_once(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        assert request_cancel(run_id, actor="ann") == ExecutionState.CANCELLED
    run = run_of(acme, run_id)
    assert (run.state, run.outcome, run.code) == ("cancelled", "cancelled", "CANCELLED")
    assert (run.message, run.next_step) == ("Cancelled by ann.", "")
    assert steps_of(acme, run_id) == {"one": "cancelled", "two": "cancelled"}
    assert ticket_of(run_id) is None
    assert events_of(acme, run_id) == ["execution.queued", "execution.cancelled"]


def test_a_placed_run_is_asked_to_stop(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
        assert request_cancel(placement.execution_id, actor="ann") == ExecutionState.RUNNING
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.cancel_requested) == (TicketState.PLACED, True)
    assert run_of(acme, placement.execution_id).outcome == ""
    assert steps_of(acme, placement.execution_id)["one"] == "running"
    assert events_of(acme, placement.execution_id)[3:] == ["execution.cancel_requested"]


def test_who_asked_first_is_named_when_the_run_has_ended(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
        for actor in ("ann", "bob"):
            asked = cancel(placement.execution_id, message=f"Cancelled by {actor}.", actor=actor)
            assert asked == ExecutionState.RUNNING
        requests = ExecutionEvent.objects.filter(kind="execution.cancel_requested")
        assert [event.data for event in requests] == [
            {"actor": "ann", "message": "Cancelled by ann."}
        ]
        assert set_outcome(placement, ExecutionState.CANCELLED, code="CANCELLED", message="cut")
        assert close_execution(placement) == ExecutionState.CANCELLED
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.message) == ("cancelled", "Cancelled by ann.")
    assert events_of(acme, placement.execution_id)[3:] == [
        "execution.cancel_requested", "step.cancelled", "execution.cancelled",
    ]  # fmt: skip


def test_a_run_that_ends_otherwise_after_all_keeps_its_own_message(
    acme: TenantRef, boot: WorkerBoot
) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        cancel(placement.execution_id, message="Cancelled by ann.")
        assert set_outcome(placement, ExecutionState.FAILED, code="UNKNOWN_ERROR", message="broke")
        assert close_execution(placement) == ExecutionState.FAILED
    assert run_of(acme, placement.execution_id).message == "broke"


@pytest.mark.parametrize("state", [StepState.PENDING, StepState.RETRYING])
def test_a_run_that_waits_for_a_time_ends_at_once_and_is_never_woken(
    acme: TenantRef, boot: WorkerBoot, state: StepState
) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
        Step.objects.filter(path="one").update(state=state)
        Execution.objects.update(wake_at=Now())
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED))
        assert due_of(placement.execution_id) is not None
        assert request_cancel(placement.execution_id, actor="ann") == ExecutionState.CANCELLED
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code, run.wake_at) == ("cancelled", "CANCELLED", None)
    assert steps_of(acme, placement.execution_id) == {"one": "cancelled", "two": "cancelled"}
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert wake_due() == 0


def test_an_ended_run_is_left_as_it_is(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        cancel(run_id, message="first")
    before = everything_of(acme)
    with tenant_scope(acme), pytest.raises(AlreadyEnded, match="cancelled"):
        request_cancel(run_id, actor="ann")
    assert everything_of(acme) == before


def test_another_tenants_run_is_not_there(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    run_id = make_run(acme)
    before = everything_of(acme)
    with tenant_scope(globex), pytest.raises(NotFound):
        request_cancel(run_id, actor="mallory")
    assert everything_of(acme) == before
