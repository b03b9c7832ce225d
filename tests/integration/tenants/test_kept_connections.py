"""Connections that threads share and that keep to tenants: statements stay prepared, bounded, in their scopes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection, connections, transaction

from executions.models import Blueprint
from tenants.names import tenant_role
from tenants.postgresql import kept
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.database_scope import DatabaseScope
from tenants.postgresql.plans import PLANS_MAX
from tenants.scope import (
    Entered,
    TenantRef,
    close_kept_connections,
    give_back_connection,
    keep_connections,
    login_scope,
    platform_scope,
    tenant_scope,
)
from tenants.statement import Statement

Server = psycopg.Connection[tuple[object, ...]]
PREPARED = """SELECT count(*), coalesce(max(generic_plans + custom_plans), 0) FROM pg_prepared_statements
              WHERE statement LIKE '%isolane:where_am_i%'"""
DRIVERS_OWN = 100  # statements that the driver keeps on a connection
PLACES = 4
ROUNDS = 50
SECONDS = 60


class WhereRow(NamedTuple):
    """The backend, and the scope that it is in."""

    backend: int
    role: str
    path: str


WHERE = Statement(
    "where_am_i",
    "SELECT pg_backend_pid() AS backend, current_user::text AS role, current_setting('search_path') AS path",
    row=WhereRow,
)


@pytest.fixture(autouse=True)
def _kept(acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This thread shares connections, as links of a worker do."""
    monkeypatch.setattr(DatabaseWrapper, "_all_kept", {})
    usual = connections["default"]
    begin_to_keep()
    yield
    connection.close()
    close_kept_connections()
    connections["default"] = usual


def begin_to_keep() -> None:
    """Give this thread a wrapper without the pool of the tests."""
    settings = dict(connections["default"].settings_dict)
    options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
    settings |= {"OPTIONS": options, "KEPT_CONNECTIONS": PLACES}
    connections["default"] = DatabaseWrapper(settings, "default")
    keep_connections()


def wrapper() -> DatabaseWrapper:
    return cast("DatabaseWrapper", connections["default"])


def places() -> list[kept.KeptConnection]:
    found = DatabaseWrapper._all_kept["default"]._places
    return [place for place in found if place.connection is not None]


def prepared() -> list[tuple[int, int]]:
    """For each connection, how many of our statements are prepared, and how often the most used one was run."""
    rows = [place.connection.execute(PREPARED).fetchone() for place in places() if place.connection]
    return [(count, used) for count, used in filter(None, rows)]


def elsewhere(tenant: TenantRef, number: int) -> Entered:
    """A scope with another search_path and the tenant's role: as good as another tenant, for plans."""
    role = tenant_role(connection.settings_dict["NAME"], tenant.id)
    scope = DatabaseScope(search_path=f"{tenant.schema}, public, no{number}", role=role)
    return Entered(wrapper(), scope)


def where() -> WhereRow:
    row = WHERE.fetch()
    assert row is not None
    return row


def inside(tenant: TenantRef) -> tuple[str, str]:
    return f"isolane_t_{tenant.id}", f"{tenant.schema}, public"


# --- plans
def test_statements_of_more_tenants_than_the_driver_has_room_for_stay_prepared(
    acme: TenantRef, globex: TenantRef
) -> None:
    many = 2 * DRIVERS_OWN
    for _ in range(3):
        for number in range(many // 2):
            for tenant in (acme, globex):
                with elsewhere(tenant, number):
                    where()
    counts = [count for count, _ in prepared()]
    assert len(counts) == PLACES
    assert sum(counts) == many  # each on one connection
    assert {used for _, used in prepared()} == {3}


def test_a_tenant_keeps_its_connection(acme: TenantRef, globex: TenantRef) -> None:
    seen: dict[str, set[int]] = {"acme": set(), "globex": set()}
    for _ in range(5):
        for tenant in (acme, globex):
            with tenant_scope(tenant):
                seen[tenant.schema].add(where().backend)
    assert [len(backends) for backends in seen.values()] == [1, 1]


def test_the_number_of_plans_of_a_connection_is_bounded(acme: TenantRef, globex: TenantRef) -> None:
    for number in range(2 * PLACES * PLANS_MAX):
        with elsewhere((acme, globex)[number % 2], number):
            where()
    counts = [count for count, _ in prepared()]
    assert max(counts) > DRIVERS_OWN
    assert max(counts) <= PLANS_MAX


def test_a_connection_is_replaced_when_its_backend_has_seen_too_many_tenants(
    acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TENANTS_MAX", 3)
    backends = set()
    for number in range(40):
        with elsewhere((acme, globex)[number % 2], number):
            backends.add(where().backend)
        assert all(len(place.tenants) <= 3 for place in places())
    assert len(backends) >= 40 / 4


def test_so_is_one_of_a_thread_that_has_its_own(
    acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TENANTS_MAX", 1)
    wrapper()._keeps = False
    with tenant_scope(acme):
        first = where().backend
    give_back_connection()
    with tenant_scope(globex):
        assert where().backend == first
    give_back_connection()
    with tenant_scope(acme):
        assert where().backend != first


# --- scopes
def test_threads_share_connections_and_stay_in_their_scopes(
    acme: TenantRef, globex: TenantRef
) -> None:
    wrong: list[object] = []
    backends: set[int] = set()
    barrier = threading.Barrier(2 * PLACES)

    def work(number: int) -> None:
        begin_to_keep()
        tenant = (acme, globex)[number % 2]
        barrier.wait(SECONDS)
        for _ in range(ROUNDS):
            with platform_scope():
                path = where().path
            with tenant_scope(tenant):
                row = where()
                backends.add(row.backend)
                if (row.role, row.path) != inside(tenant) or path != "public":
                    wrong.append((row, path))
        connection.close()

    with ThreadPoolExecutor(2 * PLACES) as threads:
        for done in [threads.submit(work, number) for number in range(2 * PLACES)]:
            done.result(SECONDS)
    assert wrong == []
    assert len(places()) == PLACES
    assert all(not place.taken for place in places())


def test_the_scope_of_the_thread_before_is_not_the_next_ones(
    acme: TenantRef, globex: TenantRef
) -> None:
    DatabaseWrapper._all_kept["default"] = kept.KeptConnections(1)
    with tenant_scope(acme):
        first = where()
        Blueprint.objects.create(name="of-acme")
    with tenant_scope(globex):
        assert where() == WhereRow(first.backend, *inside(globex))
        assert not Blueprint.objects.exists()
    with login_scope():
        assert where() == WhereRow(first.backend, "isolane_login", "public")


def test_a_cursor_of_a_connection_that_was_put_back_is_refused(
    acme: TenantRef, globex: TenantRef
) -> None:
    with tenant_scope(acme):
        cursor = connection.cursor()
        cursor.execute("SELECT 1")
    with pytest.raises(InterfaceError, match="given back"):
        cursor.execute("SELECT 1")
    with tenant_scope(globex), pytest.raises(InterfaceError, match="given back"):
        cursor.execute("SELECT * FROM executions_blueprint")


def test_a_transaction_stays_on_its_connection(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme), transaction.atomic():
        began = where().backend
        Blueprint.objects.create(name="of-acme")
        with platform_scope():
            assert where().backend == began
        assert where() == WhereRow(began, *inside(acme))
    with tenant_scope(globex):
        assert not Blueprint.objects.exists()
    with tenant_scope(acme):
        assert Blueprint.objects.count() == 1


def test_a_transaction_that_was_rolled_back_leaves_no_scope(
    acme: TenantRef, globex: TenantRef
) -> None:
    for tenant in (acme, globex) * 3:
        with pytest.raises(ZeroDivisionError), transaction.atomic(), tenant_scope(tenant):
            Blueprint.objects.create(name="gone")
            raise ZeroDivisionError
        for other in (acme, globex):
            with tenant_scope(other):
                assert where()[1:] == inside(other)
                assert not Blueprint.objects.exists()


def test_one_with_an_open_transaction_is_not_handed_on(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        began = where().backend
        connection.connection.autocommit = False
        connection.connection.execute("SELECT 1")
    with tenant_scope(acme):
        assert where().backend != began


# --- lost connections
def test_dead_ones_are_replaced(acme: TenantRef, globex: TenantRef, superuser: Server) -> None:
    for _ in range(3):
        for tenant in (acme, globex):
            with tenant_scope(tenant):
                assert where()[1:] == inside(tenant)
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE usename LIKE 'isolane%' AND pid <> pg_backend_pid()"
        )


def test_one_that_is_lost_in_a_transaction_frees_its_place(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    for _ in range(2 * PLACES):
        with pytest.raises(psycopg.Error), tenant_scope(acme), transaction.atomic():
            superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [where().backend])
            connection.connection.execute("SELECT 1")
        with tenant_scope(globex):
            assert where()[1:] == inside(globex)
    assert all(not place.taken for place in DatabaseWrapper._all_kept["default"]._places)


def test_one_that_is_lost_at_a_change_of_scope_in_a_transaction_frees_its_place_at_once(
    acme: TenantRef, superuser: Server
) -> None:
    with pytest.raises(OperationalError), transaction.atomic(), tenant_scope(acme):
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [where().backend])
        with platform_scope():
            where()
    assert connection.connection is None
    assert not any(place.taken for place in places())
    with tenant_scope(acme):
        assert where()[1:] == inside(acme)
