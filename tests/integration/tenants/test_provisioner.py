"""Rows of tenants are worked off: each once, whatever dies, and none waits for one that fails."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from executions.models import Blueprint
from executions.services.offboarding import advance_deletions
from foundation.errors import Conflict
from tenants import provisioner, schemas
from tenants.models import FormerTenant, Tenant
from tenants.owner import MIGRATION_LOCK, OWNER
from tenants.provisioner import Provisioner, turn, work_off
from tenants.roles import Role
from tenants.scope import TenantNotActive, TenantRef, platform_scope, tenant_scope
from tenants.selectors import tenant_by_schema
from tenants.services.api_keys import create_api_key
from tenants.services.tenants import create_tenant, set_status
from tenants.statuses import TenantStatus
from tests.factories import make_tenant
from tests.integration.tenants.catalogue import dumped
from tests.integration.tenants.outdated import outdate
from tests.integration.tenants.web import visitor
from tests.plugin import ROOT, SERVERS
from tests.transition_guard import guard_tenant
from tests.waiting import wait_for

Server = psycopg.Connection[tuple[object, ...]]
OWNERS_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'isolane_owner' AND pid <> ALL(%s)"
)
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE usename = 'isolane_owner' AND wait_event_type = 'Lock'"
)


def row(schema: str) -> Tenant:
    with platform_scope():
        found: Tenant = Tenant.objects.get(schema_name=schema)
    return found


def status(schema: str) -> str:
    return str(row(schema).status)


def ask(*schemas: str) -> None:
    for schema in schemas:
        create_tenant(schema=schema, actor="tests")


def delete(*schemas: str) -> None:
    for schema in schemas:
        set_status(schema=schema, status=TenantStatus.DELETING, actor="tests")
    advance_deletions()


def try_now() -> None:
    """Let the time until the next try pass."""
    with platform_scope():
        Tenant.objects.update(provisioning_after=None)


def schemas_and_roles(server: Server, tenant: TenantRef) -> tuple[object, ...]:
    found = server.execute(
        "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = %s), "
        "(SELECT count(*) FROM pg_roles WHERE rolname = %s)",
        [tenant.schema, f"isolane_t_{tenant.id}"],
    ).fetchone()
    assert found is not None
    return found


# --- making
def test_a_tenant_takes_no_work_before_it_is_made(acme: TenantRef, superuser: Server) -> None:
    initech = create_tenant(schema="initech", actor="tests")
    assert initech.status == "creating"
    assert schemas_and_roles(superuser, initech) == (0, 0)
    with pytest.raises(TenantNotActive, match="'initech' is being created; it accepts no work"):
        tenant_scope(initech)
    key = create_api_key(tenant=initech, name="early", role=Role.AUTHOR, actor="tests")
    early = visitor(authorization=f"Bearer {key}")
    assert early.get("/api/v1/executions").status_code == 409
    for wanted in (TenantStatus.ACTIVE, TenantStatus.SUSPENDED):
        with pytest.raises(Conflict, match="is being created; wait until it is active"):
            set_status(schema="initech", status=wanted, actor="tests")

    assert turn()
    assert not turn()

    assert schemas_and_roles(superuser, initech) == (1, 1)
    assert early.get("/api/v1/executions").status_code == 200
    with tenant_scope(tenant_by_schema("initech")):
        Blueprint.objects.create(name="first")


def test_what_cannot_be_made_is_told_and_keeps_no_other_waiting(
    acme: TenantRef, superuser: Server
) -> None:
    superuser.execute("CREATE SCHEMA reports")
    try:
        ask("reports", "initech")
        work_off()
        assert status("initech") == "active"
        failed = row("reports")
        assert failed.status == "creating"
        assert failed.provisioning_error.startswith(
            "schema_taken: The database has a schema 'reports' that does not belong to a tenant."
        )
        assert failed.provisioning_failures == 1
        assert not turn()  # not before its time
        try_now()
        work_off()
        assert row("reports").provisioning_failures == 2
        # The owner of that schema keeps it.
        delete("reports")
        work_off()
        assert not Tenant.objects.filter(schema_name="reports").exists()
        with platform_scope():
            assert not FormerTenant.objects.filter(schema_name="reports").exists()
    finally:
        superuser.execute("DROP SCHEMA reports")


def test_a_template_that_cannot_be_cloned_is_tried_again(
    acme: TenantRef, superuser: Server
) -> None:
    superuser.execute("CREATE VIEW _template.odd AS SELECT 1")
    try:
        ask("initech")
        work_off()
        assert "relation odd" in row("initech").provisioning_error
    finally:
        superuser.execute("DROP VIEW _template.odd")
    try_now()
    work_off()
    made = row("initech")
    assert (made.status, made.provisioning_error, made.provisioning_failures) == ("active", "", 0)


def test_a_row_that_another_holds_is_passed_over(acme: TenantRef) -> None:
    ask("first", "second")
    with psycopg.connect(SERVERS.owner_url) as other:
        other.execute("SELECT FROM tenants_tenant WHERE schema_name = 'first' FOR UPDATE")
        work_off()
        assert (status("first"), status("second")) == ("creating", "active")
    work_off()
    assert status("first") == "active"


def test_several_at_once_make_each_tenant_once(
    acme: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"tenant{number}" for number in range(6)]
    ask(*names)
    made: list[tuple[str, int]] = []
    original = schemas.create_schema
    both = threading.Barrier(2)

    def create_schema(tenant_id: int, schema: str) -> str:
        me = threading.get_ident()
        if me not in {thread for _, thread in made}:
            both.wait(timeout=20)  # so that both are at it at the same time
        made.append((schema, me))
        return original(tenant_id, schema)

    monkeypatch.setattr(provisioner, "create_schema", create_schema)
    pair = [Provisioner(), Provisioner()]
    threads = [threading.Thread(target=one.run) for one in pair]
    for thread in threads:
        thread.start()
    wait_for(lambda: {status(name) for name in names} == {"active"}, "all to be made")
    for one, thread in zip(pair, threads, strict=True):
        one.stop()
        thread.join()
    assert sorted(schema for schema, _ in made) == names
    assert len({thread for _, thread in made}) == 2


def test_nothing_is_made_while_the_template_changes(acme: TenantRef) -> None:
    ask("initech")
    with psycopg.connect(SERVERS.owner_url) as migration:
        migration.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        work_off()
        assert status("initech") == "creating"
        # The server may notice the end of the connection only later.
        migration.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    work_off()
    assert status("initech") == "active"


def test_a_killed_one_leaves_nothing_and_another_finishes(
    acme: TenantRef, superuser: Server
) -> None:
    before = dumped()
    initech = create_tenant(schema="initech", actor="tests")
    others = [found[0] for found in superuser.execute(
        "SELECT pid FROM pg_stat_activity WHERE usename = 'isolane_owner'").fetchall()]  # fmt: skip
    with psycopg.connect(SERVERS.superuser_url, dbname="isolane") as blocker:
        # The last thing that is read: role, schema and tables have been made when it is waited for.
        blocker.execute("LOCK TABLE _template.django_migrations IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli", "provisioner"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_POOL_SIZE": "0"},
        )
        wait_for(lambda: superuser.execute(WAITING).fetchone(), "it to be in the middle")
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(
        lambda: superuser.execute(OWNERS_SESSIONS, [others]).fetchone() == (0,),
        "the server to notice",
    )
    assert schemas_and_roles(superuser, initech) == (0, 0)
    assert dumped() == before
    assert status("initech") == "creating"
    work_off()
    assert schemas_and_roles(superuser, initech) == (1, 1)
    assert status("initech") == "active"


def test_looking_for_work_is_a_few_cheap_statements(acme: TenantRef, globex: TenantRef) -> None:
    turn()
    with CaptureQueriesContext(connections[OWNER]) as captured:
        assert not turn()
    assert len(captured) == 3
    assert not any("FOR" in query["sql"] for query in captured)


# --- deleting
@pytest.fixture
def undroppable(acme: TenantRef) -> Iterator[TenantRef]:
    """Its role owns something in another database, where the platform's owner cannot drop it."""
    stuck = make_tenant("stuck")
    with psycopg.connect(SERVERS.superuser_url, autocommit=True) as elsewhere:
        elsewhere.execute(f"CREATE SCHEMA of_stuck AUTHORIZATION isolane_t_{stuck.id}")
        yield stuck
        elsewhere.execute("DROP SCHEMA IF EXISTS of_stuck")


def test_a_deletion_that_fails_is_told_once_and_keeps_no_other_waiting(
    undroppable: TenantRef, globex: TenantRef, superuser: Server, caplog: pytest.LogCaptureFixture
) -> None:
    gone = make_tenant("gone")
    delete("stuck", "gone")
    for _ in range(3):
        work_off()
    assert schemas_and_roles(superuser, gone) == (0, 0)
    failed = row("stuck")
    assert failed.status == "purging"
    assert failed.provisioning_error.startswith("database_error: role")
    assert "cannot be dropped" in failed.provisioning_error
    assert schemas_and_roles(superuser, undroppable) == (1, 1)  # all or nothing
    told = [record for record in caplog.records if "stuck" in record.getMessage()]
    assert [record.levelname for record in told] == ["ERROR"]
    with psycopg.connect(SERVERS.superuser_url, autocommit=True) as elsewhere:
        elsewhere.execute("DROP SCHEMA of_stuck")
    try_now()
    work_off()
    assert schemas_and_roles(superuser, undroppable) == (0, 0)
    assert not Tenant.objects.filter(schema_name="stuck").exists()


def test_one_that_was_never_made_can_be_deleted(acme: TenantRef) -> None:
    ask("initech")
    delete("initech")
    assert status("initech") == "purging"
    work_off()
    assert not Tenant.objects.filter(schema_name="initech").exists()


# --- migrating
def test_an_outdated_schema_is_migrated_and_one_that_fails_is_left_as_it_was(
    acme: TenantRef, superuser: Server
) -> None:
    broken, late = make_tenant("broken"), make_tenant("late")
    whole = dumped("late")
    outdate(superuser, "broken", broken=True)
    outdate(superuser, "late")
    before = dumped("broken")

    work_off()

    guard_tenant(superuser, "late")  # the tests' own triggers are in no migration
    assert dumped("late") == whole
    with tenant_scope(late):  # its role has got its rights on the new tables
        Blueprint.objects.create(name="of-late")
    assert row("late").schema_version == row("acme").schema_version
    failed = row("broken")
    assert (failed.status, failed.schema_version) == ("active", "old")
    assert "already exists" in failed.provisioning_error
    assert dumped("broken") == before
    with tenant_scope(broken):
        assert not Blueprint.objects.exists()


def test_outdated_schemas_are_left_to_provisioners_of_the_templates_version(
    acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    superuser.execute("UPDATE tenants_tenant SET schema_version = 'old' WHERE id = %s", [acme.id])
    monkeypatch.setattr(provisioner, "version_of_code", lambda: "another")
    assert not turn()
    assert row("acme").schema_version == "old"
    monkeypatch.undo()
    work_off()
    assert row("acme").schema_version != "old"
