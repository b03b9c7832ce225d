"""A tenant is made whole or not at all; migrations reach every tenant; no role can do more than it should."""

from collections.abc import Callable

import psycopg
import pytest
from django.conf import settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from executions.models import Blueprint
from tenants import provisioning
from tenants.cloning import CannotClone
from tenants.models import AuditEntry, Domain, Quota, Tenant
from tenants.provisioning import (
    OwnerNeeded,
    create_schema,
    drop_schema,
    ensure_login_role,
    migrate,
    owner_connection,
)
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services import tenants as service
from tenants.services.tenants import TenantExists, create_tenant
from tests.integration.tenants.catalogue import dumped
from tests.plugin import SERVERS

Server = psycopg.Connection[tuple[object, ...]]


def tenant_roles(superuser: Server) -> set[object]:
    rows = superuser.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'isolane_t_%'")
    return {row[0] for row in rows.fetchall()}


def nothing_is_left(superuser: Server, act: Callable[[], object], error: type[Exception]) -> str:
    """Fail, find the database as it was, and return what the error said."""
    schemas, roles = dumped(), tenant_roles(superuser)
    with platform_scope():
        rows = {model: model.objects.count() for model in (Tenant, Domain, Quota, AuditEntry)}
    with pytest.raises(error) as failed:
        act()
    assert dumped() == schemas
    assert tenant_roles(superuser) == roles
    with platform_scope():
        assert {model: model.objects.count() for model in rows} == rows
    return str(failed.value)


# --- all or nothing
def test_a_new_tenant_can_be_entered_and_is_empty(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        Blueprint.objects.create(name="of-acme")
    initech = create_tenant(schema="initech", actor="tests")
    with tenant_scope(initech):
        assert not Blueprint.objects.exists()
        Blueprint.objects.create(name="of-initech")


def test_a_template_that_cannot_be_cloned(acme: TenantRef, superuser: Server) -> None:
    superuser.execute("CREATE VIEW _template.odd AS SELECT 1")
    try:
        message = nothing_is_left(
            superuser,
            lambda: create_tenant(schema="half", actor="tests"),
            CannotClone,
        )
    finally:
        superuser.execute("DROP VIEW _template.odd")
    assert "relation odd" in message


def test_a_failure_after_the_schema_was_made(
    acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service, "record", fail)
    nothing_is_left(
        superuser, lambda: create_tenant(schema="half", actor="tests"), ZeroDivisionError
    )


def test_a_schema_that_another_tenant_has(acme: TenantRef, superuser: Server) -> None:
    create_tenant(schema="domain", actor="tests")  # a name that the error's own words hold

    def again() -> None:
        create_tenant(schema="domain", domain="other.isolane.test", actor="tests")

    assert "The schema 'domain' is taken" in nothing_is_left(superuser, again, TenantExists)


def test_a_domain_that_another_tenant_has(acme: TenantRef, superuser: Server) -> None:
    def again() -> None:
        create_tenant(schema="other", domain="Acme.isolane.test", actor="tests")

    message = nothing_is_left(superuser, again, TenantExists)
    assert "The domain 'acme.isolane.test' is taken" in message


def test_a_schema_that_is_no_tenants(acme: TenantRef, superuser: Server) -> None:
    superuser.execute("CREATE SCHEMA reports")
    try:
        message = nothing_is_left(
            superuser, lambda: create_tenant(schema="reports", actor="tests"), TenantExists
        )
    finally:
        superuser.execute("DROP SCHEMA reports")
    assert "has a schema 'reports' that is no tenant's" in message


def test_a_schema_is_made_only_inside_a_transaction(database: None) -> None:
    with pytest.raises(RuntimeError, match="needs a transaction"):
        create_schema(1, "half")


def test_dropping_is_for_one_tenant_and_may_be_repeated(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    before, roles = dumped(), tenant_roles(superuser)
    gone = create_tenant(schema="gone", actor="tests")
    for _ in range(2):
        drop_schema(gone.id, gone.schema)
    assert dumped() == before
    assert tenant_roles(superuser) == roles


def test_without_the_owners_url_nothing_is_provisioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning, "OWNER", "nobody")
    with pytest.raises(OwnerNeeded, match="set DATABASE_OWNER_URL"):
        owner_connection()


# --- migrations
def test_migrating_again_changes_nothing(acme: TenantRef, globex: TenantRef) -> None:
    before = dumped()
    seen: list[str] = []
    migrate(seen.append)
    assert seen == ["public", "_template", "acme", "globex"]
    assert dumped() == before


def test_a_migration_reaches_the_tenants_there_are(acme: TenantRef, superuser: Server) -> None:
    late = create_tenant(schema="late", actor="tests")
    whole = dumped("late")
    owned = superuser.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'late' AND tablename LIKE 'executions%'"
    ).fetchall()
    tables = sql.SQL(", ").join(sql.Identifier("late", str(row[0])) for row in owned)
    superuser.execute(sql.SQL("DROP TABLE {}").format(tables))
    superuser.execute("DELETE FROM late.django_migrations WHERE app = 'executions'")
    assert dumped("late") != whole

    migrate()

    assert dumped("late") == whole
    with tenant_scope(late):  # its role has got its rights on the new tables
        Blueprint.objects.create(name="of-late")


# --- roles
def test_the_attributes_of_the_roles(acme: TenantRef, globex: TenantRef, superuser: Server) -> None:
    rows = superuser.execute(
        "SELECT rolname, rolcanlogin, rolinherit FROM pg_roles WHERE rolname LIKE 'isolane\\_%' "
        "AND NOT rolsuper AND NOT rolbypassrls AND NOT rolcreatedb AND NOT rolreplication"
    ).fetchall()
    logins = {row[0]: row[2] for row in rows if row[1]}
    assert logins == {"isolane_owner": True, "isolane_login": False}
    entered = {row[0] for row in rows if not row[1]}
    assert entered >= {"isolane_platform", "isolane_tenants", f"isolane_t_{acme.id}"}
    may_create = superuser.execute("SELECT rolname FROM pg_roles WHERE rolcreaterole")
    assert {row[0] for row in may_create.fetchall()} == {"isolane_owner", "postgres"}


def test_a_tenants_role_belongs_to_the_group_and_to_no_other(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    rows = superuser.execute(
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = %s::regrole",
        [f"isolane_t_{acme.id}"],
    ).fetchall()
    assert rows == [("isolane_tenants",)]


@pytest.mark.parametrize("attribute", ["INHERIT", "SUPERUSER", "BYPASSRLS"])
def test_a_login_role_that_would_see_everything_is_refused(
    attribute: str, database: None, superuser: Server
) -> None:
    superuser.execute(f"ALTER ROLE isolane_login {attribute}")
    try:
        with pytest.raises(OwnerNeeded, match="must be NOINHERIT and neither SUPERUSER"):
            migrate()
    finally:
        superuser.execute("ALTER ROLE isolane_login NOINHERIT NOSUPERUSER NOBYPASSRLS")


def test_a_missing_login_role_is_made_without_showing_its_password(
    database: None, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "USER", "isolane_second_login")
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", "hunter2")
    superuser.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    with owner_connection().cursor() as cursor:
        ensure_login_role(cursor)
        ensure_login_role(cursor)  # it is as it should be
    try:
        url = make_conninfo(
            SERVERS.login_url, user="isolane_second_login", password="hunter2", dbname="postgres"
        )
        with psycopg.connect(url) as login:
            assert login.execute("SELECT current_user").fetchone() == ("isolane_second_login",)
        shown = superuser.execute(
            "SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'CREATE ROLE%hunter2%'"
        )
        assert shown.fetchone() == (0,)
    finally:
        superuser.execute("DROP ROLE isolane_second_login")
