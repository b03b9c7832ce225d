"""Connections that the server has ended are replaced if nothing depends on them, in the wanted scope."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection, connections, transaction

from executions.models import Blueprint
from tenants.models import Tenant
from tenants.owner import owner_connection
from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import TenantRef, login_scope, platform_scope, tenant_scope
from tenants.statement import Statement
from tests.integration.executions.statements import counted
from tests.waiting import wait_for

Server = psycopg.Connection[tuple[object, ...]]
WHO = "SELECT current_user, current_setting('search_path')"
END = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE usename LIKE 'isolane%' AND pid <> pg_backend_pid()"""
SLEEPS = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
SEVERAL = 4


def hang_up(server: Server) -> int:
    """End every connection of the platform; return their number."""
    row = server.execute(END).fetchone()
    return int(str(row[0])) if row else 0


def by_cursor() -> tuple[object, ...]:
    with connection.cursor() as cursor:
        cursor.execute(WHO)
        found: tuple[object, ...] = cursor.fetchone()
    return found


class WhoRow(NamedTuple):
    """As whom, and where."""

    current_user: str
    current_setting: str


ASKED = Statement("who", WHO, row=WhoRow)


def by_statement() -> tuple[object, ...] | None:
    return ASKED.fetch()


def in_a_transaction() -> tuple[object, ...]:
    with transaction.atomic():
        return by_cursor()


ASK = pytest.mark.parametrize("ask", [by_cursor, by_statement, in_a_transaction])
Ask = Callable[[], object]


def inside(tenant: TenantRef) -> tuple[str, str]:
    return f"isolane_t_{tenant.id}", f"{tenant.schema}, public"


@pytest.fixture
def _full_pool(acme: TenantRef, globex: TenantRef) -> None:
    """Several connections lie in the pool, none is in use."""
    barrier = threading.Barrier(SEVERAL)

    def use() -> None:
        by_cursor()
        barrier.wait(10)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(SEVERAL)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connection.close()


# --- connections that die in the pool
@ASK
@pytest.mark.usefixtures("_full_pool")
def test_all_that_lie_in_the_pool_are_dead(
    acme: TenantRef, globex: TenantRef, superuser: Server, ask: Ask
) -> None:
    assert hang_up(superuser) >= SEVERAL
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            assert ask() == inside(tenant)


@pytest.mark.usefixtures("_full_pool")
def test_threads_that_ask_at_the_same_time(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    wrong: list[object] = []
    barrier = threading.Barrier(2 * SEVERAL)

    def use(tenant: TenantRef) -> None:
        barrier.wait(10)
        try:
            with tenant_scope(tenant):
                found = by_cursor()
            if found != inside(tenant):
                wrong.append(found)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            wrong.append(error)
        finally:
            connection.close()

    hang_up(superuser)
    threads = [threading.Thread(target=use, args=(t,)) for t in (acme, globex) * SEVERAL]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- the connection of a thread that keeps it, as workers' threads do
@ASK
@pytest.mark.parametrize("pooled", [True, False])
def test_one_that_is_kept_is_dead_when_it_is_used_again(
    acme: TenantRef, globex: TenantRef, superuser: Server, ask: Ask, pooled: bool
) -> None:
    with connected(pooled=pooled):
        for tenant in (acme, globex):
            with tenant_scope(tenant):
                assert ask() == inside(tenant)
                hang_up(superuser)
                assert ask() == inside(tenant)  # in the same scope
                hang_up(superuser)
            with login_scope():
                assert ask() == ("isolane_login", "public")  # in another


@contextmanager
def connected(*, pooled: bool) -> Iterator[None]:
    """Through the pool, or as a worker is: with a connection of this thread alone."""
    usual = connections["default"]
    settings = dict(usual.settings_dict)
    if not pooled:
        settings["OPTIONS"] = {k: v for k, v in settings["OPTIONS"].items() if k != "pool"}
    connections["default"] = own = DatabaseWrapper(settings, "default")
    assert (own.pool is not None) == pooled
    try:
        yield
    finally:
        own.close()
        connections["default"] = usual


def test_one_that_says_something_and_lives_is_kept(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("LISTEN somebody")
    raw = connection.connection
    superuser.execute("NOTIFY somebody, 'unasked'")
    with tenant_scope(acme):
        assert by_cursor() == inside(acme)
    assert connection.connection is raw
    connection.close()


# --- where something hangs on it, it is not replaced
@pytest.mark.parametrize("ask", [by_cursor, by_statement])
def test_within_a_transaction_nothing_is_replaced_or_repeated(
    acme: TenantRef, globex: TenantRef, superuser: Server, ask: Ask
) -> None:
    with tenant_scope(acme):
        with pytest.raises((OperationalError, InterfaceError)), transaction.atomic():
            Blueprint.objects.create(name="lost")
            hang_up(superuser)
            ask()
        assert not Blueprint.objects.exists()
    with tenant_scope(globex):
        assert by_cursor() == inside(globex)


def test_not_even_if_another_scope_is_entered_there(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    with pytest.raises((OperationalError, InterfaceError)), transaction.atomic():
        by_cursor()
        hang_up(superuser)
        with tenant_scope(acme):
            by_cursor()
    assert by_cursor() == ("isolane_login", "public")


def test_the_owners_is_not_replaced(acme: TenantRef, globex: TenantRef, superuser: Server) -> None:
    """It holds a lock while it migrates, which would be gone."""
    owner = owner_connection()
    with owner.cursor() as cursor:
        cursor.execute("SELECT 1")
    hang_up(superuser)
    with pytest.raises((OperationalError, InterfaceError)):
        Tenant.objects.using("owner").count()
    owner.close()
    assert Tenant.objects.using("owner").count() == 2


def test_a_statement_that_was_under_way_is_not_repeated(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    def end() -> None:
        wait_for(lambda: superuser.execute(SLEEPS).fetchone(), "the statement to be under way")
        hang_up(superuser)

    ending = threading.Thread(target=end)
    ending.start()
    began = time.monotonic()
    with tenant_scope(acme):
        with pytest.raises(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        ending.join()
        assert time.monotonic() - began < 30
        assert by_cursor() == inside(acme)


# --- what it costs
def test_no_statement_is_sent_to_find_out(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    with tenant_scope(acme):
        in_a_transaction()  # what an earlier test has left dead in the pool is replaced
    connection.close()
    wait_for(_pool_rests, "the pool's threads to have opened and reset all connections")
    with counted(superuser) as first, tenant_scope(acme):
        in_a_transaction()
    assert sum(n for text, n in first.items() if "set_config" in text) == 1
    with counted(superuser) as further, tenant_scope(acme):
        by_cursor()
        by_statement()
        in_a_transaction()
    assert {text for text in further if "current_user" not in text} == {"BEGIN", "COMMIT"}


def _pool_rests() -> bool:
    stats = DatabaseWrapper._connection_pools["default"].get_stats()
    return bool(stats["pool_available"] == stats["pool_size"])


def test_the_platform_is_entered_again_too(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    with platform_scope():
        assert Tenant.objects.count() == 2
        hang_up(superuser)
        assert Tenant.objects.count() == 2
