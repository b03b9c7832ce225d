"""Waiting without a slot: long backoffs and pauses park the run, and it goes on when its time has come."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from executions.placement.admission import admit
from executions.placement.models import Due
from executions.services.waking import wake_due
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.lease import LeaseLoop
from isolane.results import Code
from resources.placement import Placement
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import (
    due_of,
    events_of,
    everything_of,
    held_by,
    place,
    run_of,
    set_quota,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.worker.driving import (
    drive,
    epochs_closed,
    in_turn,
    let_its_time_come,
    run_link,
    runs_of,
    script,
    setting,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

PAUSE = setting({"seconds": 3600}, pause_s=3600)
TRANSIENT = fails(Code.TRANSIENT_ERROR, "try again")
RETRIED = {"uses": "flaky", "on_failure": "retry"}


@pytest.fixture
def _long_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a slot is held for."""
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TRANSIENT_ERROR: 61_000})


def assert_parked(tenant: TenantRef, boot: WorkerBoot, placement: Placement) -> None:
    """It waits without a slot, and nothing of it is left on the worker."""
    run, ticket = run_of(tenant, placement.execution_id), ticket_of(placement.execution_id)
    due = due_of(placement.execution_id)
    assert ticket is not None
    assert due is not None
    assert (run.state, run.outcome, ticket.state) == ("waiting", "", TicketState.PARKED)
    assert (ticket.epoch, ticket.worker_id) == (placement.epoch + 1, None)
    assert (due.at, due.tenant_id) == (run.wake_at, tenant.id)
    assert placement.execution_id not in held_by(boot)
    assert boot.contexts.get(placement.key) is None
    assert epochs_closed(boot, placement)[-1] == placement.epoch
    assert events_of(tenant, placement.execution_id)[-1] == "execution.waiting"


@pytest.mark.usefixtures("_long_backoffs")
def test_a_long_backoff_parks_the_run_and_it_goes_on_with_its_next_attempt(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=in_turn(TRANSIENT, succeeds(2)))
    placement = start(acme, boot, RETRIED, {})
    assert not run_link(links, placement, "s1")  # a link that is not followed by the next
    assert_parked(acme, boot, placement)
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.attempt) == ("pending", 1)
    assert step.retry_at == run_of(acme, placement.execution_id).wake_at
    assert wake_due() == 0

    assert let_its_time_come(acme, placement) == 1
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED
    assert due_of(placement.execution_id) is None
    (placed,) = admit()
    assert (placed.execution_id, placed.epoch) == (placement.execution_id, 2)
    assert drive(acme, links, placed).state == ExecutionState.SUCCEEDED
    assert [(run.step, run.attempt) for run in runs_of(boot, placement)] == [
        ("s1", 1), ("s1", 2), ("s2", 1),
    ]  # fmt: skip
    assert epochs_closed(boot, placement) == [1, 2]


@pytest.mark.usefixtures("_long_backoffs")
def test_attempts_are_counted_over_all_parkings(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=TRANSIENT)
    placement = start(acme, boot, RETRIED)
    for attempt in (1, 2):
        assert not run_link(links, placement, "s1")
        assert step_of(acme, placement.execution_id, "s1").attempt == attempt
        let_its_time_come(acme, placement)
        placement = place(acme, placement.execution_id, boot)
    run = drive(acme, links, placement)
    assert (run.state, run.code) == ("failed", "TRANSIENT_ERROR")
    assert step_of(acme, placement.execution_id, "s1").attempt == 3


def test_a_pause_parks_the_run_before_its_next_step(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, {"with": {"slept": "${steps.s1.seconds}"}})
    assert not run_link(links, placement, "s1")
    assert_parked(acme, boot, placement)
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "pending"}
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert [run.step for run in runs_of(boot, placement)] == ["s1", "s2"]
    assert runs_of(boot, placement)[-1].parameters == {"slept": 3600}


def test_a_pause_at_the_end_ends_the_run_at_its_time_without_a_placement(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, outputs={"s": "${steps.s1.seconds}"})
    assert not run_link(links, placement, "s1")
    assert_parked(acme, boot, placement)
    assert let_its_time_come(acme, placement) == 1
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.outcome, run.wake_at) == ("succeeded", "succeeded", None)
    assert run.outputs == {"s": 3600}
    assert run.finished_at is not None
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert events_of(acme, placement.execution_id)[-1] == "execution.succeeded"
    assert epochs_closed(boot, placement) == [1]


def test_a_parked_run_leaves_its_slot_to_the_next(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    set_quota(acme, 1)
    script(boot, flaky=PAUSE)
    first = start(acme, boot, {"uses": "flaky"}, {})
    run_link(links, first, "s1")
    second = start(acme, boot, {})
    assert held_by(boot) & {first.execution_id, second.execution_id} == {second.execution_id}


def test_what_is_not_due_is_left_alone(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, {})
    run_link(links, placement, "s1")
    before = everything_of(acme)
    assert wake_due() == 0
    assert everything_of(acme) == before


def test_a_parked_run_that_is_cancelled_ends_at_once_and_is_not_woken(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, {})
    run_link(links, placement, "s1")
    with tenant_scope(acme):
        assert request_cancel(placement.execution_id, actor="ann") == ExecutionState.CANCELLED
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert let_its_time_come(acme, placement) == 0
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "cancelled"}


def test_a_cancel_between_the_checkpoint_and_the_parking_is_not_lost(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    """The placement cannot be handed back, so the worker's loop ends it."""
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, {})
    links.begin("s1", placement, "s1")
    assert not links.run("s1", "s1", [])
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    links.end("s1")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)


def test_a_wake_up_happens_once_and_in_its_own_tenant(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=PAUSE)
    placement = start(acme, boot, {"uses": "flaky"}, {})
    run_link(links, placement, "s1")
    with platform_scope():
        Due.objects.update(at=Now() - timedelta(seconds=1))
    assert [wake_due(), wake_due()] == [1, 0]
    assert events_of(acme, placement.execution_id).count("execution.queued") == 2
