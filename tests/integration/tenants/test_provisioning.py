"""Migrations reach every tenant, whichever of them fails; no role can do more than it should."""

import psycopg
import pytest
from django.conf import settings
from psycopg.conninfo import make_conninfo

from tenants import owner, provisioner
from tenants.database_logins import ensure_login, web_login
from tenants.exposure import exposures
from tenants.models import Tenant
from tenants.owner import OwnerNeeded, owner_connection
from tenants.provisioner import work_off
from tenants.provisioning import migrate
from tenants.scope import TenantRef, platform_scope
from tenants.services.tenants import create_tenant
from tests.factories import make_tenant
from tests.integration.tenants.catalogue import dumped
from tests.integration.tenants.outdated import outdate
from tests.plugin import SERVERS
from tests.transition_guard import guard_tenant

Server = psycopg.Connection[tuple[object, ...]]


def versions() -> dict[str, str]:
    with platform_scope():
        return dict(Tenant.objects.values_list("schema_name", "schema_version"))


def test_without_the_owners_url_nothing_is_provisioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "OWNER", "nobody")
    with pytest.raises(OwnerNeeded, match="set DATABASE_OWNER_URL"):
        owner_connection()


def test_a_failure_after_the_schema_was_made(
    acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tenant(schema="half", actor="tests")
    before = dumped()

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(provisioner, "_update", fail)
    work_off()
    assert dumped() == before
    with platform_scope():
        half = Tenant.objects.get(schema_name="half")
    assert (half.status, half.schema_version) == ("creating", "")
    assert half.provisioning_error.startswith("internal_error: ZeroDivisionError")
    roles = superuser.execute("SELECT FROM pg_roles WHERE rolname = %s", [f"isolane_t_{half.pk}"])
    assert roles.fetchone() is None


# --- migrations
def test_migrating_again_changes_nothing(acme: TenantRef, globex: TenantRef) -> None:
    before = dumped()
    seen: list[str] = []
    assert migrate(seen.append) == []
    assert seen == ["public", "_template"]
    assert dumped() == before


def test_a_migration_reaches_all_tenants_but_the_one_that_fails(
    acme: TenantRef, superuser: Server
) -> None:
    for schema in ("broken", "late"):
        make_tenant(schema)
    whole = dumped("late")
    outdate(superuser, "broken", broken=True)
    outdate(superuser, "late")
    seen: list[str] = []

    (failed,) = migrate(seen.append)

    assert seen == ["public", "_template", "late"]
    guard_tenant(superuser, "late")  # the tests' own triggers are in no migration
    assert dumped("late") == whole
    assert failed.schema == "broken"
    assert "already exists" in failed.error
    assert versions()["broken"] == "old"


def test_tenants_that_a_provisioner_migrates_are_waited_for(
    acme: TenantRef, globex: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = versions()["acme"]
    superuser.execute("UPDATE tenants_tenant SET schema_version = 'old'")
    seen: list[str] = []
    with psycopg.connect(SERVERS.owner_url) as other:

        def other_begins(schema: str) -> None:
            seen.append(schema)
            if schema == "_template":  # while public changes, a provisioner holds nothing
                other.execute("SELECT FROM tenants_tenant WHERE schema_name = 'acme' FOR UPDATE")

        def other_is_done(_: float) -> None:
            assert versions() == {"acme": "old", "globex": new}
            other.execute(
                "UPDATE tenants_tenant SET schema_version = %s WHERE schema_name = 'acme'", [new]
            )
            other.commit()

        monkeypatch.setattr("tenants.provisioning.time.sleep", other_is_done)
        assert migrate(other_begins) == []
    assert seen == ["public", "_template", "globex"]
    assert versions() == {"acme": new, "globex": new}


# --- roles
def test_the_attributes_of_the_roles(acme: TenantRef, globex: TenantRef, superuser: Server) -> None:
    rows = superuser.execute(
        "SELECT rolname, rolcanlogin, rolinherit FROM pg_roles WHERE rolname LIKE 'isolane\\_%' "
        "AND NOT rolsuper AND NOT rolbypassrls AND NOT rolcreatedb AND NOT rolreplication"
    ).fetchall()
    logins = {row[0]: row[2] for row in rows if row[1]}
    assert logins == {"isolane_owner": True, "isolane_login": False, "isolane_worker": False}
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
@pytest.mark.parametrize(
    ("role", "variable"),
    [("isolane_login", "DATABASE_URL"), ("isolane_worker", "DATABASE_WORKER_URL")],
)
def test_a_login_role_that_would_see_everything_is_refused(
    attribute: str, role: str, variable: str, database: None, superuser: Server
) -> None:
    superuser.execute(f"ALTER ROLE {role} {attribute}")
    said = f"{role}' of {variable} must be NOINHERIT and neither SUPERUSER"
    try:
        with pytest.raises(OwnerNeeded, match=said):
            migrate()
    finally:
        superuser.execute(f"ALTER ROLE {role} NOINHERIT NOSUPERUSER NOBYPASSRLS")


def test_a_missing_login_role_is_made_without_showing_its_password(
    database: None, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "USER", "isolane_second_login")
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", "hunter2")
    superuser.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    with owner_connection().cursor() as cursor:
        ensure_login(cursor, web_login())
        ensure_login(cursor, web_login())  # it is as it should be
    superuser.execute("GRANT CONNECT ON DATABASE isolane TO isolane_second_login")
    try:
        url = make_conninfo(SERVERS.login_url, user="isolane_second_login", password="hunter2")
        with psycopg.connect(url) as login:
            assert login.execute("SELECT current_user").fetchone() == ("isolane_second_login",)
        shown = superuser.execute(
            "SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'CREATE ROLE%hunter2%'"
        )
        assert shown.fetchone() == (0,)
    finally:
        superuser.execute("DROP OWNED BY isolane_second_login")
        superuser.execute("DROP ROLE isolane_second_login")


# --- what only a superuser can take from the roles
@pytest.mark.parametrize("url", [SERVERS.login_url, SERVERS.worker_url])
def test_a_login_role_reaches_no_other_database_of_the_server(database: None, url: str) -> None:
    for name in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(url, dbname=name)


def test_what_roles_may_beyond_their_needs_is_told_with_what_mends_it(
    acme: TenantRef, superuser: Server
) -> None:
    assert exposures() == []
    superuser.execute("GRANT CONNECT ON DATABASE template1 TO PUBLIC")
    superuser.execute("GRANT TEMPORARY ON DATABASE postgres TO isolane_worker")
    superuser.execute("GRANT EXECUTE ON FUNCTION lo_create(oid) TO PUBLIC")
    try:
        databases, functions = exposures()
    finally:
        superuser.execute("REVOKE TEMPORARY ON DATABASE postgres FROM isolane_worker")
        for sentence in (databases, functions):
            superuser.execute(sentence.partition(": ")[2])
    assert 'DATABASE "postgres", "template1" FROM PUBLIC' in databases
    assert "FUNCTION lo_create(oid) FROM PUBLIC" in functions
    assert exposures() == []
