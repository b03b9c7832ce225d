"""Real servers, a migrated database, and two tenants for every test that touches data."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis
from pytest_django import DjangoDbBlocker

from orchestrator.embedded.supervisor import Supervisor
from tests.customer import Customer, running_customer
from tests.plugin import PATHS, SERVERS
from tests.recorder import Recorder
from tests.requirements import VARIABLE, give_up

if TYPE_CHECKING:
    from resources.runtimes.base import Availability
    from tenants.scope import TenantRef

STANDING_TENANTS = ("acme", "globex")
# Minutes of waiting for leases, beside which others have the processors for themselves.
WAITING = ("test_chaos", "survival", "test_stack", "acceptance", "norp", "test_model")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, so that none is left alone at the end; otherwise the order is as it was."""

    def place(item: pytest.Item) -> int:
        found = [number for number, name in enumerate(WAITING) if name in item.nodeid]
        return min(found, default=len(WAITING))

    items.sort(key=place)


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """PostgreSQL, Valkey and the run cache, empty."""
    SERVERS.prepare()
    with Supervisor(PATHS.logs) as supervisor:
        for child in SERVERS.children():
            supervisor.start(child)
        SERVERS.bootstrap()
        yield


@pytest.fixture(scope="session")
def django_db_setup(servers: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Migrate, and make the two standing tenants; in place of pytest-django's own test database.

    From then on PostgreSQL refuses every change of state that is not in `executions.states`.
    """
    with django_db_blocker.unblock():
        from orchestrator.celery import app
        from tenants.provisioning import migrate
        from tests import transition_guard
        from tests.factories import make_tenant

        app.set_default()
        assert migrate() == []
        with as_superuser() as connection:
            transition_guard.install(connection)
        for schema in STANDING_TENANTS:
            make_tenant(schema, trusted=True)


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database as the login role, with real commits; wiped afterwards by the superuser.

    A transaction around the test would hide what scopes, fences and rollbacks really do.
    """
    with django_db_blocker.unblock():
        yield
        from django.db import connections

        for connection in connections.all(initialized_only=True):
            connection.close()
        from tests.transition_guard import was_refused

        with as_superuser() as server:
            refused = was_refused(server)
    wipe()
    assert not refused, (
        "a change of state that executions.states does not allow; PostgreSQL's log says which"
    )


@pytest.fixture
def provisioner(database: None) -> Iterator[None]:
    """A provisioner works beside the test."""
    from tests.provisioners import running_provisioner

    with running_provisioner():
        yield


@pytest.fixture
def acme(database: None) -> "TenantRef":
    """A tenant."""
    from tenants.selectors import tenant_by_schema

    return tenant_by_schema("acme")


@pytest.fixture
def globex(database: None) -> "TenantRef":
    """Another tenant, which must never notice the first."""
    from tenants.selectors import tenant_by_schema

    return tenant_by_schema("globex")


@pytest.fixture
def broker(servers: None) -> Iterator["redis.Redis"]:
    """The broker as its administrator, empty before and after; nobody else was refused anything meanwhile."""
    with redis.Redis.from_url(SERVERS.redis_url, decode_responses=False) as client:
        client.flushall()
        client.acl_log_reset()
        yield client
        client.flushall()
        refused = [entry for entry in client.acl_log() if entry["reason"] != "auth"]
        assert not refused, refused


@pytest.fixture
def run_cache(servers: None) -> Iterator["redis.Redis"]:
    """The run cache as its administrator; without entries and users of runs before and after."""
    with redis.Redis.from_url(SERVERS.cache_url, decode_responses=True) as client:
        _empty(client)
        yield client
        _empty(client)


@pytest.fixture(scope="session")
def customer() -> Iterator[Customer]:
    """A customer's PostgreSQL with invoices, and looks at it from its own side; by a Unix socket, too."""
    with running_customer(PATHS, sockets=PATHS.postgres / "customer-sockets") as running:
        yield running


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """An HTTP server that remembers what it was asked."""
    with Recorder().serving() as recorder:
        yield recorder


@pytest.fixture
def superuser(servers: None) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A look from the server's side, past every policy."""
    with as_superuser() as connection:
        yield connection


def as_superuser() -> "psycopg.Connection[tuple[object, ...]]":
    """Connect past every policy; each statement is committed by itself."""
    return psycopg.connect(SERVERS.superuser_url, dbname="isolane", autocommit=True)


def _empty(cache: "redis.Redis") -> None:
    cache.flushall()
    users = [str(name) for name in cache.acl_users() if name != "default"]
    if users:
        cache.acl_deluser(*users)


def wipe() -> None:
    """Leave the standing tenants with nothing in them."""
    with as_superuser() as connection:
        rows = connection.execute(
            "SELECT id, schema_name FROM tenants_tenant ORDER BY id"
        ).fetchall()
        for tenant_id, schema in rows:
            if schema not in STANDING_TENANTS:
                connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
                connection.execute("DELETE FROM tenants_quota WHERE tenant_id = %s", [tenant_id])
        tables = [
            f'"{schema}"."{table}"'
            for schema, table in connection.execute(
                "SELECT schemaname, tablename FROM pg_tables "
                "WHERE schemaname = ANY(%s) AND tablename <> 'django_migrations'",
                [list(STANDING_TENANTS)],
            ).fetchall()
        ]
        tables += [
            "placement_ticket", "placement_due", "placement_worker", "placement_catalogue", "ledger_issuedcredential",
            "tenants_auditentry", "tenants_apikey", "tenants_membership", "tenants_user", "django_session",
            "tenants_formertenant", "django_admin_log",
        ]  # fmt: skip
        connection.execute(f"TRUNCATE {', '.join(tables)} CASCADE")
        gone = [row[0] for row in rows if row[1] not in STANDING_TENANTS]
        connection.execute(
            "DELETE FROM tenants_domain WHERE tenant_id = ANY(%s) OR NOT is_primary", [gone]
        )
        connection.execute("DELETE FROM tenants_tenant WHERE id = ANY(%s)", [gone])
        connection.execute(
            "UPDATE tenants_tenant SET status = 'active', trusted = true, required_isolation = 'shared', "
            "provisioning_error = '', provisioning_failures = 0, provisioning_after = NULL"
        )
        connection.execute(
            "UPDATE tenants_quota SET max_running = 5, budget = '{}', cpu = NULL, ram_mb = NULL, processes = NULL, "
            "disk_mb = NULL, open_files = NULL, output_kb = NULL, connections = NULL, network_mb = NULL, "
            "idle_seconds = NULL, max_run_minutes = NULL"
        )
        for tenant_id in gone:
            role = f"isolane_t_{tenant_id}"
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                connection.execute(f'DROP OWNED BY "{role}"')
                connection.execute(f'DROP ROLE "{role}"')


@pytest.fixture(scope="session")
def process_level() -> "Availability":
    """The level `process` on this machine: offered, or the reason why not, which fails where it is required."""
    from resources.runtimes.process import ProcessBackend

    backend = ProcessBackend(level="process", size=1)
    try:
        found = backend.availability()
    finally:
        backend.stop()
    if not found.ok and os.environ.get(VARIABLE):
        give_up(f"the level process is not available: {found.reason}")
    return found
