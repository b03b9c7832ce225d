"""One tenant's schema and role are created whole or not at all, and dropped with all that the role owns."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import transaction
from psycopg import sql

from executions.models import Blueprint
from tenants import schemas
from tenants.owner import OWNER, owner_connection
from tenants.schemas import (
    SchemaTaken,
    create_schema,
    drop_role,
    drop_schema,
    version_of,
    version_of_code,
)
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_tenant
from tests.integration.tenants.catalogue import dumped

Server = psycopg.Connection[tuple[object, ...]]
NOBODYS_ID = 999_999_999
OWNED = """
SELECT pg_get_userbyid(lomowner), count(*) FROM pg_largeobject_metadata GROUP BY 1 ORDER BY 1"""


def tenant_roles(superuser: Server) -> set[object]:
    rows = superuser.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'isolane_t_%'")
    return {row[0] for row in rows.fetchall()}


def role_of(tenant: TenantRef) -> str:
    return f"isolane_t_{tenant.id}"


def test_a_new_tenant_can_be_entered_and_is_empty(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        Blueprint.objects.create(name="of-acme")
    initech = make_tenant("initech")
    with tenant_scope(initech):
        assert not Blueprint.objects.exists()
        Blueprint.objects.create(name="of-initech")


def test_nothing_is_left_of_one_that_cannot_be_made(acme: TenantRef, superuser: Server) -> None:
    superuser.execute("CREATE SCHEMA reports")
    before, roles = dumped(), tenant_roles(superuser)
    try:
        with (
            pytest.raises(
                SchemaTaken, match="has a schema 'reports' that does not belong to a tenant"
            ),
            transaction.atomic(using=OWNER),
        ):
            create_schema(NOBODYS_ID, "reports")
        assert dumped() == before
        assert tenant_roles(superuser) == roles
    finally:
        superuser.execute("DROP SCHEMA reports")


def test_dropping_is_for_one_tenant_and_may_be_repeated(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    before, roles = dumped(), tenant_roles(superuser)
    gone = make_tenant("gone")
    for _ in range(2):
        with transaction.atomic(using=OWNER):
            drop_schema(gone.schema)
            assert drop_role(gone.id)
    assert dumped() == before
    assert tenant_roles(superuser) == roles


def test_they_are_changed_only_inside_a_transaction(database: None) -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        create_schema(1, "half")


# --- what a role may own
@pytest.fixture
def large_objects(acme: TenantRef, superuser: Server) -> Iterator[TenantRef]:
    """Five of a tenant that will be dropped, which is returned, and one of another that stays."""
    gone = make_tenant("gone")
    for owner in [*[role_of(gone)] * 5, role_of(acme)]:
        row = superuser.execute("SELECT lo_create(0)").fetchone()
        assert row is not None
        statement = sql.SQL("ALTER LARGE OBJECT {} OWNER TO {}")
        superuser.execute(statement.format(sql.Literal(row[0]), sql.Identifier(owner)))
    yield gone
    superuser.execute("SELECT lo_unlink(oid) FROM pg_largeobject_metadata")


def test_large_objects_and_default_privileges_go_with_their_role(
    large_objects: TenantRef, acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = large_objects
    superuser.execute(
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {role_of(gone)} GRANT SELECT ON TABLES TO PUBLIC"
    )
    assert superuser.execute(OWNED).fetchall() == [(role_of(acme), 1), (role_of(gone), 5)]
    monkeypatch.setattr(schemas, "LARGE_OBJECTS_AT_ONCE", 2)
    turns: list[bool] = []
    while not turns or not turns[-1]:
        with transaction.atomic(using=OWNER):
            drop_schema(gone.schema)
            turns.append(drop_role(gone.id))
    assert turns == [False, False, True]
    assert role_of(gone) not in tenant_roles(superuser)
    assert superuser.execute(OWNED).fetchall() == [(role_of(acme), 1)]


def test_a_tenant_cannot_make_large_objects(acme: TenantRef, superuser: Server) -> None:
    superuser.execute(f"SET ROLE {role_of(acme)}")
    for call in ("lo_create(0)", "lo_creat(-1)", "lo_from_bytea(0, 'x')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="lo_"):
            superuser.execute(f"SELECT {call}")


# --- versions
def test_the_template_has_the_migrations_of_this_program(
    acme: TenantRef, superuser: Server
) -> None:
    with owner_connection().cursor() as cursor:
        assert version_of(cursor, "_template") == version_of(cursor, "acme") == version_of_code()
        superuser.execute("UPDATE acme.django_migrations SET name = name || 'x' WHERE id = 1")
        try:
            assert version_of(cursor, "acme") != version_of_code()
        finally:
            superuser.execute(
                "UPDATE acme.django_migrations SET name = rtrim(name, 'x') WHERE id = 1"
            )
