"""Waking what waits for a time: of all tenants, each once, and nothing that is not due."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from executions.models import Execution, Step
from executions.placement.models import Due, DueKind
from executions.semantics.reasons import EndReason
from executions.services import waking
from executions.services.offboarding import advance_deletion
from executions.services.waking import wake_due
from executions.states import ExecutionState, StepState, TicketState
from executions.transitions.claim import claim_step
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.wake import wake
from executions.worker.boot import WorkerBoot
from executions.worker.loops.tick import Tick
from resources.placement import Placement
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import (
    due_of,
    events_of,
    everything_of,
    held_by,
    make_placed,
    make_tenant,
    run_of,
    ticket_of,
)
from tests.integration.executions.threads import at_once

pytestmark = pytest.mark.usefixtures("broker")

HOUR = timedelta(hours=1)


def park(tenant: TenantRef, boot: WorkerBoot, *, due: bool, last: bool = False) -> Placement:
    """A run whose first step has paused it; perhaps its time has come, perhaps nothing follows."""
    placement = make_placed(tenant, boot, *(("one",) if last else ("one", "two")))
    with tenant_scope(tenant):
        claim_step(placement, "one", worker="w1@test")
        steps = Step.objects.filter(execution_id=placement.execution_id, path="one")
        steps.update(state=StepState.SUCCEEDED)
        Execution.objects.filter(pk=placement.execution_id).update(
            wake_at=Now() - HOUR if due else Now() + HOUR, next_step="" if last else "two"
        )
        assert hand_back(placement, PlacementEnd(reason=EndReason.PARKED))
    return placement


def test_runs_of_all_tenants_whose_time_has_come_are_queued(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    due = [(tenant, park(tenant, boot, due=True)) for tenant in (acme, globex)]
    later = [(tenant, park(tenant, boot, due=False)) for tenant in (acme, globex)]
    assert wake_due() == 2
    for tenant, placement in due:
        run, ticket = run_of(tenant, placement.execution_id), ticket_of(placement.execution_id)
        assert ticket is not None
        assert (run.state, run.wake_at, ticket.state) == ("queued", None, TicketState.WAITING)
        assert due_of(placement.execution_id) is None
        assert events_of(tenant, placement.execution_id)[-1] == "execution.queued"
    for tenant, placement in later:
        assert run_of(tenant, placement.execution_id).state == ExecutionState.WAITING
        assert due_of(placement.execution_id) is not None


def test_with_nothing_left_the_wake_up_ends_the_run(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    ends, goes_on = park(acme, boot, due=True, last=True), park(globex, boot, due=True)
    assert wake_due() == 2
    run = run_of(acme, ends.execution_id)
    assert (run.state, run.outcome) == ("succeeded", "succeeded")
    assert run.finished_at is not None
    assert ticket_of(ends.execution_id) is None
    assert run_of(globex, goes_on.execution_id).state == ExecutionState.QUEUED


def test_in_two_places_at_once_each_run_is_woken_once(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    for _ in range(5):
        parked = [(tenant, park(tenant, boot, due=True)) for tenant in (acme, globex)]
        at_once([wake_due, wake_due])
        for tenant, placement in parked:
            assert events_of(tenant, placement.execution_id).count("execution.queued") == 2


def test_more_than_a_batch_is_woken_turn_by_turn(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "BATCH", 2)
    for tenant in (acme, globex, acme):
        park(tenant, boot, due=True)
    assert [wake_due(), wake_due(), wake_due()] == [2, 1, 0]


def test_what_cannot_be_woken_stands_behind_the_others(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = park(acme, boot, due=True), park(globex, boot, due=True)

    def fail(execution_id: UUID) -> ExecutionState | None:
        if execution_id == bad.execution_id:
            raise ValueError("broken")
        return wake(execution_id)

    monkeypatch.setattr(waking, "BATCH", 1)
    monkeypatch.setattr(waking, "wake", fail)
    with platform_scope():
        Due.objects.filter(ref=bad.execution_id).update(at=Now() - 2 * HOUR)
    assert [wake_due(), wake_due(), wake_due()] == [1, 1, 0]
    assert run_of(globex, good.execution_id).state == ExecutionState.QUEUED
    due = due_of(bad.execution_id)
    assert due is not None
    assert due.at > timezone.now()


@pytest.mark.parametrize("kind", DueKind)
def test_what_is_due_for_what_is_gone_is_forgotten(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, kind: DueKind
) -> None:
    with platform_scope():
        Due.objects.create(tenant_id=acme.id, kind=kind, ref=uuid4(), at=Now() - HOUR)
    other = park(globex, boot, due=True)
    before = everything_of(acme)
    wake_due()
    assert {**everything_of(acme), "due": before["due"]} == before
    assert wake_due() == 0
    assert run_of(globex, other.execution_id).state == ExecutionState.QUEUED


def test_a_run_of_a_suspended_tenant_is_woken_but_not_placed(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    idle, other = park(acme, boot, due=True), park(globex, boot, due=True)
    set_status(schema="acme", status=TenantStatus.SUSPENDED, actor="tests")
    Tick(boot).turn()
    assert held_by(boot) == {other.execution_id}
    assert getattr(ticket_of(idle.execution_id), "state", None) == TicketState.WAITING


def test_what_a_deleted_tenant_waited_for_is_gone_with_it(
    acme: TenantRef, boot: WorkerBoot
) -> None:
    leaving = make_tenant("leaving", trusted=True)
    placement = park(leaving, boot, due=True)
    other = park(acme, boot, due=True)
    set_status(schema="leaving", status=TenantStatus.DELETING, actor="tests")
    assert advance_deletion(leaving)
    work_off()
    assert due_of(placement.execution_id) is None
    assert wake_due() == 1
    assert run_of(acme, other.execution_id).state == ExecutionState.QUEUED
