"""Admission on real rows: by quota and capacity, each ticket once, and no request to admit is lost."""

from collections import Counter
from uuid import UUID

import psycopg
import pytest

from executions.placement import admission
from executions.placement.admission import ADMISSION_LOCK, admit
from executions.placement.models import Ticket, Worker
from executions.placement.rules import PlacementDecision, Snapshot, decide
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from resources.runtimes.stub import succeeds
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import (
    let_lapse,
    make_boot,
    make_run,
    set_quota,
    ticket_of,
)
from tests.integration.executions.threads import at_once, in_thread

Server = psycopg.Connection[tuple[object, ...]]


def ids(placed: list[Placement]) -> set[UUID]:
    found = {one.execution_id for one in placed}
    assert len(found) == len(placed)
    return found


def make_runs(tenant: TenantRef, count: int) -> list[UUID]:
    return [make_run(tenant) for _ in range(count)]


def test_the_placement_is_written_and_told(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    runs = {tenant.id: make_run(tenant) for tenant in (acme, globex)}
    placed = {found.tenant_id: found for found in admit()}
    assert placed == {
        tenant_id: Placement(
            tenant_id=tenant_id,
            execution_id=run_id,
            epoch=1,
            boot=boot.id,
            worker=boot.node_name,
            lane=boot.lane,
        )
        for tenant_id, run_id in runs.items()
    }
    for run_id in runs.values():
        ticket = ticket_of(run_id)
        assert ticket is not None
        assert (ticket.state, ticket.worker_id) == ("placed", boot.id)
    assert admit() == []


def test_each_tenant_up_to_its_quota_in_the_order_of_waiting(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    set_quota(acme, 2)
    first = make_runs(acme, 3)
    second = make_runs(globex, 1)
    assert ids(admit()) == {*first[:2], *second}
    set_quota(acme, 3)
    assert ids(admit()) == {*first[2:]}


def test_up_to_the_capacity_of_the_workers(acme: TenantRef, globex: TenantRef) -> None:
    small, big = make_boot(capacity=1), make_boot(capacity=2)
    runs = [make_run(tenant) for tenant in (acme, globex, acme, globex)]
    placed = admit()
    assert ids(placed) == {*runs[:3]}
    assert Counter(found.boot for found in placed) == {small.id: 1, big.id: 2}


@pytest.mark.parametrize("why", ["lapsed", "draining"])
def test_a_worker_that_is_about_to_end_gets_nothing(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, why: str
) -> None:
    runs = [make_run(tenant) for tenant in (acme, globex)]
    if why == "lapsed":
        let_lapse(boot)
    else:
        with platform_scope():
            Worker.objects.update(draining=True)
    assert admit() == []
    other = make_boot()
    assert {(found.execution_id, found.boot) for found in admit()} == {
        (run_id, other.id) for run_id in runs
    }


def test_runs_go_only_where_their_catalogue_is(acme: TenantRef, globex: TenantRef) -> None:
    old = make_boot()
    bound_to_old = [make_run(tenant) for tenant in (acme, globex)]
    make_boot(script={"work": succeeds(1), "more": succeeds(2)}, name="newer")
    assert {found.boot for found in admit()} == {old.id}
    assert all(ticket_of(run_id) for run_id in bound_to_old)


def test_runs_that_no_worker_can_take_do_not_block_their_tenants_others(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    set_quota(acme, 1)
    make_run(acme)  # bound to the first catalogue, which goes away
    let_lapse(boot)
    newer = make_boot(script={"work": succeeds(1), "more": succeeds(2)})
    runs = [make_run(tenant) for tenant in (acme, globex)]
    placed = admit()
    assert ids(placed) == {*runs}
    assert {found.boot for found in placed} == {newer.id}


def test_a_run_that_is_to_be_cancelled_is_not_placed(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    make_run(acme)
    with tenant_scope(acme):
        Ticket.objects.update(cancel_requested=True)
    other = make_run(globex)
    assert ids(admit()) == {other}


def test_two_at_once_place_each_ticket_once(acme: TenantRef, globex: TenantRef) -> None:
    for _ in range(10):
        host = make_boot(capacity=4)
        runs = [make_run(tenant) for tenant in (acme, globex, acme, globex)]
        first, second = at_once([admit, admit])
        assert ids(first + second) == {*runs}
        with platform_scope():
            Ticket.objects.all().delete()
            Worker.objects.filter(boot=host.id).delete()


def test_more_than_a_batch_is_placed_in_one_go(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "BATCH", 2)
    runs = [make_run(tenant) for tenant in (acme, globex, acme, globex, acme)]
    assert ids(admit()) == {*runs}


# --- no lost wake-up
def test_while_another_holds_the_lock_nothing_is_placed(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, superuser: Server
) -> None:
    runs = [make_run(tenant) for tenant in (acme, globex)]
    superuser.execute("SELECT pg_advisory_lock(%s)", [ADMISSION_LOCK])
    assert admit() == []
    superuser.execute("SELECT pg_advisory_unlock(%s)", [ADMISSION_LOCK])
    assert ids(admit()) == {*runs}


def test_the_holder_places_what_came_while_it_held_the_lock(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request is committed after the holder's snapshot and finds the lock taken."""
    first = make_run(acme)
    second: list[UUID] = []
    refused: list[list[Placement]] = []

    def submit_and_admit() -> list[Placement]:
        second.append(make_run(globex))
        return admit()

    def decide_slowly(snapshot: Snapshot) -> list[PlacementDecision]:
        if not second:
            refused.append(in_thread(submit_and_admit).result(timeout=20))
        return decide(snapshot)

    monkeypatch.setattr(admission, "decide", decide_slowly)
    assert ids(admit()) == {first, *second}
    assert refused == [[]]


def test_a_suspended_tenants_runs_wait_until_it_is_resumed(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    waiting, other = make_run(acme), make_run(globex)
    set_status(schema="acme", status=TenantStatus.SUSPENDED, actor="tests")
    assert ids(admit()) == {other}
    set_status(schema="acme", status=TenantStatus.ACTIVE, actor="tests")
    assert ids(admit()) == {waiting}
