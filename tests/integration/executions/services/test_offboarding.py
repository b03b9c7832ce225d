"""Deleting a tenant: its runs are stopped first, its data goes when none holds a slot."""

import psycopg
import pytest

from executions.placement.models import Ticket
from executions.services import offboarding
from executions.services.offboarding import advance_deletion, advance_deletions
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.loops.lease import LeaseLoop
from resources.placement import Placement
from tenants.models import Tenant
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import everything_of, make_placed, make_run, make_tenant, run_of, ticket_of
from tests.integration.executions.worker.lines import Lines

Server = psycopg.Connection[tuple[object, ...]]

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def leaving(database: None) -> TenantRef:
    """A tenant of this test's own, which will be deleted."""
    return make_tenant("leaving", trusted=True)


@pytest.fixture
def placed(leaving: TenantRef, boot: WorkerBoot) -> Placement:
    """One of its runs holds a slot."""
    return make_placed(leaving, boot)


def begin_deletion() -> None:
    set_status(schema="leaving", status=TenantStatus.DELETING, actor="tests")


def schemas(server: Server) -> set[object]:
    rows = server.execute("SELECT nspname FROM pg_namespace").fetchall()
    return {row[0] for row in rows}


def test_placed_runs_are_asked_to_stop_and_waiting_ones_go(
    leaving: TenantRef, placed: Placement, superuser: Server
) -> None:
    waiting = make_run(leaving)
    begin_deletion()
    assert not advance_deletion(leaving)
    ticket = ticket_of(placed.execution_id)
    assert ticket is not None
    assert ticket.cancel_requested
    assert ticket_of(waiting) is None
    assert run_of(leaving, placed.execution_id).state == ExecutionState.QUEUED
    assert "leaving" in schemas(superuser)


def test_the_data_goes_once_the_last_run_has_ended(
    leaving: TenantRef, placed: Placement, boot: WorkerBoot, superuser: Server
) -> None:
    begin_deletion()
    advance_deletions()
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert run_of(leaving, placed.execution_id).state == ExecutionState.CANCELLED
    advance_deletions()
    work_off()
    assert "leaving" not in schemas(superuser)
    with platform_scope():
        assert not Tenant.objects.filter(schema_name="leaving").exists()
        assert not Ticket.objects.filter(tenant_id=leaving.id).exists()


def test_a_tenant_that_is_not_being_deleted_is_left_alone(
    acme: TenantRef, boot: WorkerBoot, placed: Placement, superuser: Server
) -> None:
    make_placed(acme, boot)
    make_run(acme)
    before = everything_of(acme)
    begin_deletion()
    advance_deletions()
    assert everything_of(acme) == before
    assert {"acme", "globex"} <= schemas(superuser)


def test_one_that_fails_is_told_once_and_keeps_no_other_waiting(
    leaving: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    make_tenant("behind")
    original = offboarding.advance_deletion

    def fail_for_one(tenant: TenantRef) -> bool:
        if tenant.id == leaving.id:
            raise ZeroDivisionError
        return original(tenant)

    monkeypatch.setattr(offboarding, "advance_deletion", fail_for_one)
    begin_deletion()
    set_status(schema="behind", status=TenantStatus.DELETING, actor="tests")
    for _ in range(3):
        advance_deletions()
    with platform_scope():
        stands = dict(Tenant.objects.values_list("schema_name", "status"))
        failed = Tenant.objects.get(pk=leaving.id)
    assert (stands["leaving"], stands["behind"]) == ("deleting", "purging")
    assert (failed.provisioning_error[:33], failed.provisioning_failures) == (
        "internal_error: ZeroDivisionError",
        1,
    )
    told = lines.of("tenants.failures", "stopping the runs of tenant leaving")
    assert len(told) == 1
