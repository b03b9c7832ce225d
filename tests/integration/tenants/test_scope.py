"""Inside a tenant's scope PostgreSQL itself refuses everything of others."""

import threading

import psycopg
import pytest
from django.db import DatabaseError, ProgrammingError, connection, transaction

from executions.models import Blueprint
from tenants.models import AuditEntry, Tenant
from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import (
    ScopeError,
    TenantNotActive,
    TenantRef,
    login_scope,
    platform_scope,
    tenant_scope,
)
from tenants.services.audit import record
from tenants.statuses import TenantStatus

Server = psycopg.Connection[tuple[object, ...]]


def who_and_where() -> tuple[str, str]:
    """The role and search_path, as the server sees them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_setting('search_path')")
        role, path = cursor.fetchone()
    return role, path


def role_of(tenant: TenantRef) -> str:
    return f"isolane_t_{tenant.id}"


def test_rows_of_two_tenants_stay_apart(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        Blueprint.objects.create(name="of-acme")
    with tenant_scope(globex):
        assert not Blueprint.objects.exists()
        Blueprint.objects.create(name="of-globex")
    with tenant_scope(acme):
        assert [b.name for b in Blueprint.objects.all()] == ["of-acme"]


def test_another_tenants_table_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme), connection.cursor() as cursor:
        with pytest.raises(ProgrammingError, match="permission denied for schema globex"):
            cursor.execute("SELECT * FROM globex.executions_blueprint")


def test_another_tenants_rows_of_a_shared_table_are_invisible(
    acme: TenantRef, globex: TenantRef
) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            record(action="test", actor=tenant.schema, tenant=tenant)
    with tenant_scope(acme):
        assert [entry.actor for entry in AuditEntry.objects.all()] == ["acme"]
    with platform_scope():
        assert AuditEntry.objects.filter(action="test").count() == 2


def test_a_row_for_another_tenant_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme), pytest.raises(ProgrammingError, match="row-level security"):
        record(action="test", actor="acme", tenant=globex)


def test_a_tenant_cannot_read_who_the_tenants_are(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme), pytest.raises(ProgrammingError, match="permission denied"):
        Tenant.objects.count()


def test_outside_of_every_scope_nothing_of_a_tenant_is_visible(
    acme: TenantRef, globex: TenantRef
) -> None:
    with connection.cursor() as cursor:
        with pytest.raises(ProgrammingError, match="permission denied"):
            cursor.execute("SELECT * FROM acme.executions_execution")
        with pytest.raises(ProgrammingError, match="permission denied"):
            cursor.execute("SELECT * FROM placement_ticket")


def test_entering_is_one_statement_at_the_server(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    superuser.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    count = """SELECT coalesce(sum(calls), 0)::int FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
               WHERE r.rolname LIKE 'isolane%'"""
    with tenant_scope(acme):
        Blueprint.objects.count()
    before = superuser.execute(count).fetchone()
    for tenant in (globex, acme):
        with tenant_scope(tenant):
            Blueprint.objects.count()
    with tenant_scope(acme):  # again: nothing to set
        Blueprint.objects.count()
    after = superuser.execute(count).fetchone()
    # Three counts, and one set_config for each of the two changes of tenant.
    assert before is not None
    assert after is not None
    assert int(str(after[0])) - int(str(before[0])) == 5


@pytest.mark.parametrize("savepoint", [False, True])
def test_the_scope_survives_a_rollback(acme: TenantRef, globex: TenantRef, savepoint: bool) -> None:
    with transaction.atomic():
        with (
            pytest.raises(ZeroDivisionError),
            transaction.atomic(savepoint=savepoint),
            tenant_scope(acme),
        ):
            Blueprint.objects.create(name="gone")
            raise ZeroDivisionError
        if not savepoint:
            transaction.set_rollback(True)
    with tenant_scope(globex):
        assert who_and_where() == (role_of(globex), "globex, public")
        assert not Blueprint.objects.exists()


def test_entered_inside_a_savepoint_that_is_rolled_back(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme), transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            with platform_scope():
                who_and_where()
            raise ZeroDivisionError
        assert who_and_where() == (role_of(acme), "acme, public")


def test_left_inside_an_aborted_transaction(acme: TenantRef, globex: TenantRef) -> None:
    with (
        pytest.raises(ProgrammingError),
        transaction.atomic(),
        tenant_scope(acme),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM no_such_table")
    assert who_and_where() == ("isolane_login", "public")


def test_a_cursor_older_than_the_scope_follows_it(acme: TenantRef, globex: TenantRef) -> None:
    with connection.cursor() as cursor:
        for tenant in (acme, globex):
            with tenant_scope(tenant):
                cursor.execute("SELECT current_user")
                assert cursor.fetchone() == (role_of(tenant),)


def test_a_connection_whose_scope_could_not_be_set_is_closed(acme: TenantRef) -> None:
    ghost = TenantRef(id=999_999, schema="ghost", status=TenantStatus.ACTIVE)
    who_and_where()
    raw = connection.connection
    with pytest.raises(DatabaseError, match="isolane_t_999999"), tenant_scope(ghost):
        Blueprint.objects.count()
    assert raw.closed
    assert who_and_where() == ("isolane_login", "public")


def test_a_lost_connection_enters_the_scope_again(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        Blueprint.objects.create(name="kept")
        connection.close()
        assert who_and_where() == (role_of(acme), "acme, public")


@pytest.mark.parametrize("status", [TenantStatus.SUSPENDED, TenantStatus.DELETING])
def test_only_an_active_tenant_is_entered(acme: TenantRef, status: TenantStatus) -> None:
    idle = TenantRef(id=acme.id, schema=acme.schema, status=status)
    with pytest.raises(TenantNotActive), tenant_scope(idle):
        pytest.fail("entered")
    with tenant_scope(idle, allowed=TenantStatus.any()):
        assert who_and_where()[0] == role_of(acme)


def test_a_tenant_is_not_entered_from_inside_another(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        with pytest.raises(ScopeError), tenant_scope(globex):
            pytest.fail("entered")
        with login_scope(), tenant_scope(globex):
            assert who_and_where()[0] == role_of(globex)
        assert who_and_where()[0] == role_of(acme)


def test_threads_do_not_mix_their_tenants_up(acme: TenantRef, globex: TenantRef) -> None:
    wrong: list[object] = []
    barrier = threading.Barrier(4)

    def work(mine: TenantRef) -> None:
        barrier.wait()
        for _ in range(50):
            with tenant_scope(mine):
                if who_and_where() != (role_of(mine), f"{mine.schema}, public"):
                    wrong.append(mine)
        connection.close()

    threads = [threading.Thread(target=work, args=(tenant,)) for tenant in (acme, globex) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_django_tenants_own_context_manager_is_closed() -> None:
    with pytest.raises(TypeError, match="tenant_scope"), Tenant(schema_name="acme"):
        pass


def test_a_connection_given_back_to_the_pool_has_left_its_scope(acme: TenantRef) -> None:
    with tenant_scope(acme):
        who_and_where()
        connection.close()
    pool = DatabaseWrapper._connection_pools["default"]
    with pool.connection(timeout=5) as raw:
        assert raw.execute("SELECT current_user").fetchone() == ("isolane_login",)
