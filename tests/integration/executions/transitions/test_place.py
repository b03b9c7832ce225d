"""Placing: a ticket that waits is given its slot, once; whatever it has become meanwhile stays."""

from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from executions.placement.models import Ticket
from executions.semantics.reasons import EndReason
from executions.states import TicketState
from executions.transitions.hand_back import hand_back
from executions.transitions.place import PlacedTicket, place_tickets
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import update_tenant
from tests.factories import events_of, everything_of, make_boot, make_run, run_of, ticket_of
from tests.integration.executions.threads import at_once
from tests.integration.executions.transitions.runs import park, pause

beside_a_neighbour = pytest.mark.usefixtures("neighbour")


def place(boot: WorkerBoot, *executions: object) -> list[PlacedTicket]:
    with platform_scope():
        return place_tickets(executions, [boot.id] * len(executions))  # type: ignore[arg-type]


def seconds_left(execution_id: UUID) -> float:
    ticket = ticket_of(execution_id)
    assert ticket is not None
    assert ticket.deadline is not None
    return (ticket.deadline - timezone.now()).total_seconds()


def test_runs_of_several_tenants_get_their_slots_in_one_statement(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    other = make_boot(name="w2@test")
    runs = {tenant.id: make_run(tenant) for tenant in (acme, globex)}
    boots = {acme.id: boot.id, globex.id: other.id}
    with platform_scope():
        placed = place_tickets(list(runs.values()), [boots[tenant] for tenant in runs])
    assert sorted(placed, key=lambda ticket: ticket.tenant_id) == [
        PlacedTicket(execution_id=runs[tenant], tenant_id=tenant, epoch=1, boot=boots[tenant])
        for tenant in sorted(runs)
    ]


@beside_a_neighbour
def test_the_time_that_is_left_becomes_a_deadline(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    before = ticket_of(run_id)
    place(boot, run_id)
    ticket = ticket_of(run_id)
    assert before is not None
    assert ticket is not None
    assert (ticket.state, ticket.worker_id) == (TicketState.PLACED, boot.id)
    assert (ticket.epoch, ticket.waiting_since) == (before.epoch, before.waiting_since)
    assert ticket.deadline is not None
    left = ticket.deadline - timezone.now()
    assert timedelta(seconds=before.time_left - 20) < left <= timedelta(seconds=before.time_left)


@pytest.mark.parametrize(("minutes", "expected"), [(2, 120), (45, 1800), (None, 1800)])
def test_the_stricter_of_the_runs_time_and_its_tenants_becomes_the_deadline(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, minutes: int | None, expected: int
) -> None:
    update_tenant(schema="acme", limits={"max_run_minutes": minutes}, actor="tests")
    ours, theirs = make_run(acme), make_run(globex)
    place(boot, ours, theirs)
    assert seconds_left(ours) == pytest.approx(expected, abs=20)
    assert seconds_left(theirs) == pytest.approx(1800, abs=20)


@beside_a_neighbour
def test_the_tenants_time_is_that_of_all_placements_together(
    acme: TenantRef, boot: WorkerBoot
) -> None:
    update_tenant(schema="acme", limits={"max_run_minutes": 10}, actor="tests")
    run_id = make_run(acme)
    (placed,) = place(boot, run_id)
    with platform_scope():
        tickets = Ticket.objects.filter(execution_id=run_id)
        tickets.update(deadline=Now() + timedelta(seconds=100))
    with tenant_scope(acme):
        placement = boot.placement(acme.id, str(run_id), placed.epoch)
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_DRAINING)) == "queued"
    place(boot, run_id)
    assert seconds_left(run_id) == pytest.approx(100, abs=20)


@beside_a_neighbour
def test_nothing_is_written_into_the_tenants_schema(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    place(boot, run_id)
    assert (run_of(acme, run_id).state, events_of(acme, run_id)) == ("queued", ["execution.queued"])


@beside_a_neighbour
def test_what_is_placed_parked_or_gone_is_not_placed(
    acme: TenantRef, boot: WorkerBoot, claimed: Placement
) -> None:
    other = make_boot(name="w2@test")
    assert place(other, claimed.execution_id, uuid4()) == []
    pause(acme, claimed)
    park(acme, claimed)
    before = everything_of(acme)
    assert place(other, claimed.execution_id) == []
    assert everything_of(acme) == before


@beside_a_neighbour
def test_of_two_at_once_one_places_it(acme: TenantRef, boot: WorkerBoot) -> None:
    for _ in range(5):
        run_id = make_run(acme)
        both = at_once([partial(place, boot, run_id)] * 2)
        assert sorted(len(placed) for placed in both) == [0, 1]


@beside_a_neighbour
def test_nothing_to_place(boot: WorkerBoot) -> None:
    assert place(boot) == []
