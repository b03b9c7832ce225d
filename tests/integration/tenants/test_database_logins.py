"""The rights of a worker's credential, and the login that `isolane migrate` creates for it."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest
from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from psycopg.errors import InsufficientPrivilege

from executions.placement.dispatch import admit_and_send
from executions.placement.models import Due, DueKind, Worker
from executions.services import offboarding, waking
from executions.services.offboarding import advance_deletions
from executions.services.unplaceable import settle_unplaceable
from executions.services.waking import wake_due
from executions.worker.lanes import sweep_lanes
from executions.worker.loops.reaper import reap
from executions.worker.loops.sweeper import sweep
from tenants.database_logins import worker_login
from tenants.models import Tenant
from tenants.owner import OwnerNeeded
from tenants.provisioning import migrate
from tenants.scope import TenantRef, platform_scope
from tenants.selectors import schema_of
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import let_lapse, make_boot, make_placed, make_run, make_tenant, ticket_of
from tests.plugin import SERVERS
from tests.worker_login import as_worker

Server = psycopg.Connection[tuple[object, ...]]
NOT_FOR_WORKERS = (
    "SELECT password FROM tenants_user",
    "SELECT session_data FROM django_session",
    "SELECT digest FROM tenants_apikey",
    "SELECT * FROM tenants_membership",
    "INSERT INTO tenants_user (username) VALUES ('eve')",
    "INSERT INTO django_session (session_key) VALUES ('eve')",
    "INSERT INTO tenants_apikey (name) VALUES ('eve')",
    "INSERT INTO tenants_membership (role) VALUES ('author')",
    "INSERT INTO tenants_domain (domain) VALUES ('eve.example.com')",
    "INSERT INTO tenants_tenant (schema_name) VALUES ('eve')",
    "UPDATE tenants_user SET is_superuser = true",
    "UPDATE tenants_apikey SET revoked_at = NULL",
    "UPDATE tenants_membership SET role = 'author'",
    "UPDATE tenants_domain SET tenant_id = 1",
    "UPDATE tenants_quota SET max_running = 10000",
    "UPDATE tenants_tenant SET trusted = true",
    "UPDATE tenants_tenant SET required_isolation = 'shared'",
    "DELETE FROM tenants_tenant",
    "DELETE FROM tenants_auditentry",
    "SELECT setval('placement_dirty', 1)",
)


@pytest.fixture
def worker(database: None) -> Iterator[Server]:
    """Somebody with a worker's credential."""
    with psycopg.connect(SERVERS.worker_url, autocommit=True) as connection:
        yield connection


# --- what it is good for
def test_a_workers_login_can_become_nobody_but_tenants_and_a_worker(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    rows = superuser.execute(
        "SELECT rolname FROM pg_roles WHERE pg_has_role('isolane_worker', oid, 'MEMBER')"
    )
    found = {str(row[0]) for row in rows.fetchall()}
    tenants = {role for role in found if role.startswith("isolane_t_")}
    assert tenants >= {f"isolane_t_{tenant.id}" for tenant in (acme, globex)}
    assert found - tenants == {"isolane_worker", "isolane_worker_platform", "isolane_tenants"}


def test_it_neither_reads_nor_makes_what_lets_people_in(
    acme: TenantRef, globex: TenantRef, worker: Server
) -> None:
    roles = ("none", "isolane_worker_platform", "isolane_tenants", f"isolane_t_{acme.id}")
    for role in roles:
        worker.execute(f"SET ROLE {role}")
        for statement in NOT_FOR_WORKERS:
            with pytest.raises(InsufficientPrivilege):
                worker.execute(statement)
    for role in ("isolane_platform", "isolane_login", "isolane_owner"):
        with pytest.raises(InsufficientPrivilege):
            worker.execute(f"SET ROLE {role}")


def test_it_goes_on_with_deletions_that_somebody_began_and_begins_none(
    acme: TenantRef, globex: TenantRef, worker: Server
) -> None:
    worker.execute("SET ROLE isolane_worker_platform")
    for status in TenantStatus.values:
        tried = worker.execute("UPDATE tenants_tenant SET status = %s", [status])
        assert tried.rowcount == 0
    set_status(schema="globex", status=TenantStatus.DELETING, actor="tests")
    with pytest.raises(InsufficientPrivilege, match="row-level security"):
        worker.execute("UPDATE tenants_tenant SET status = 'active'")
    assert worker.execute("UPDATE tenants_tenant SET status = 'purging'").rowcount == 1


def test_it_does_all_that_workers_do_beside_running_steps(
    acme: TenantRef,
    globex: TenantRef,
    broker: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaving, failing = make_tenant("leaving", trusted=True), make_tenant("failing")
    boot, lapsed = make_boot(), make_boot(name="w2@test")
    waiting, lost = make_run(acme), make_placed(globex, lapsed)
    make_run(leaving)
    let_lapse(lapsed)
    for tenant in (leaving, failing):
        set_status(schema=tenant.schema, status=TenantStatus.DELETING, actor="tests")
    with platform_scope():
        asleep = Due.objects.create(tenant_id=acme.id, kind=DueKind.WAKE, ref=uuid4(), at=Now())

    def hand_over_or_fail(tenant: TenantRef) -> bool:
        if tenant.id == failing.id:
            raise ZeroDivisionError
        return advance_deletion(tenant)

    def fail(execution_id: UUID) -> None:
        raise ValueError(execution_id)

    advance_deletion = offboarding.advance_deletion
    monkeypatch.setattr(offboarding, "advance_deletion", hand_over_or_fail)
    monkeypatch.setattr(waking, "wake", fail)
    schema_of.cache_clear()
    with as_worker():
        advance_deletions()
        assert wake_due() == 1
        assert reap(boot.node_name) == 1
        admit_and_send()
        settle_unplaceable()
        sweep()
        sweep_lanes()
    for execution_id in (waiting, lost.execution_id):
        ticket = ticket_of(execution_id)
        assert ticket is not None
        assert ticket.worker_id == boot.id
    with platform_scope():
        assert [row.boot for row in Worker.objects.all()] == [boot.id]
        assert Due.objects.get(pk=asleep.pk).at > timezone.now()
        rows = Tenant.objects.filter(pk__in=(leaving.id, failing.id)).order_by("pk")
        stands = list(rows.values_list("status", "provisioning_failures"))
    assert stands == [("purging", 0), ("deleting", 1)]


# --- how it is made
@pytest.fixture
def second(
    acme: TenantRef, globex: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a workers' login that does not exist yet."""
    url = make_conninfo(SERVERS.worker_url, user="isolane_second", password="hunter2")
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, database_worker_url=url))
    yield url
    superuser.execute("DROP OWNED BY isolane_second")
    superuser.execute("DROP ROLE isolane_second")


def test_the_migration_lets_a_new_login_into_every_tenant_and_provisioners_go_on_with_it(
    acme: TenantRef, globex: TenantRef, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert migrate() == []
    # A provisioner is told of no worker.
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, database_worker_url=""))
    later = make_tenant("later")
    with psycopg.connect(second) as worker:
        for tenant in (acme, globex, later):
            worker.execute(f"SET ROLE isolane_t_{tenant.id}")
            worker.execute(f"SELECT FROM {tenant.schema}.executions_execution")
        worker.execute("SET ROLE isolane_worker_platform")
        worker.execute("SELECT FROM placement_ticket")


@pytest.mark.parametrize("url", ["", SERVERS.login_url])
def test_workers_may_log_in_as_web_does(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, database_worker_url=url))
    assert worker_login() is None


def test_neither_login_is_taken_for_the_other(
    acme: TenantRef, globex: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = settings.DATABASES["default"]
    monkeypatch.setitem(database, "USER", "isolane_worker")
    with pytest.raises(
        OwnerNeeded, match=r"'isolane_worker' of DATABASE_URL .* another kind of process"
    ):
        migrate()
    monkeypatch.setitem(database, "USER", "isolane_other")
    monkeypatch.setattr(
        settings, "ENV", replace(settings.ENV, database_worker_url=SERVERS.login_url)
    )
    try:
        with pytest.raises(
            OwnerNeeded, match=r"'isolane_login' of DATABASE_WORKER_URL .* another kind of process"
        ):
            migrate()
    finally:
        superuser.execute("DROP ROLE isolane_other")
