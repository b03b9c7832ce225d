"""One tenant's schema and role: create, migrate and drop them as the owner, in the caller's transaction.

Timing: background-worker.
Model: sync.
Guarantee: at-most-once; PostgreSQL's DDL is transactional, a second try finds either all or nothing.
Failure: bubble; the caller's transaction is rolled back, so nothing is half-made.
"""

import hashlib
from functools import cache

from django.conf import settings
from django.db import ProgrammingError
from django.db.backends.utils import CursorWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from psycopg import sql
from psycopg.errors import DuplicateSchema

from foundation.errors import Conflict
from tenants.cloning import read_schema, statements
from tenants.database_logins import logins
from tenants.grants import create_role, grant_membership
from tenants.names import TEMPLATE_SCHEMA, tenant_role, tenants_group
from tenants.owner import owner_connection

LARGE_OBJECTS_AT_ONCE = 1000  # each takes a lock until the transaction ends, and locks are few
GRANTS_INHERITANCE = 160_000  # since PostgreSQL 16 the grant decides about inheritance
# A short hash of the names of all migrations that a schema has.
VERSION = """
SELECT left(encode(sha256(convert_to(coalesce(string_agg(app || '.' || name, ' '
       ORDER BY (app || '.' || name) COLLATE "C"), ''), 'UTF8')), 'hex'), {length})
FROM {schema}.django_migrations"""
VERSION_LENGTH = 16
UNLINK = """
SELECT count(lo_unlink(oid)) FROM (
    SELECT m.oid FROM pg_largeobject_metadata m JOIN pg_roles r ON r.oid = m.lomowner
    WHERE r.rolname = %s LIMIT %s
) AS owned"""


class SchemaTaken(Conflict):
    """The database has a schema of that name that does not belong to a tenant."""

    code = "schema_taken"


# --- versions
def version_of(cursor: CursorWrapper, schema: str) -> str:
    """Return the hash of the migrations that a schema has."""
    cursor.execute(
        sql.SQL(VERSION).format(schema=sql.Identifier(schema), length=sql.Literal(VERSION_LENGTH))
    )
    return str(cursor.fetchone()[0])


@cache
def version_of_code() -> str:
    """Return the hash of the migrations that this program has."""
    found = MigrationLoader(None).disk_migrations or {}
    names = " ".join(sorted(f"{app}.{name}" for app, name in found))
    return hashlib.sha256(names.encode()).hexdigest()[:VERSION_LENGTH]


# --- making
def create_schema(tenant_id: int, schema: str) -> str:
    """Clone the template and create the tenant's role; return the version of the schema."""
    with _owners_cursor() as cursor:
        role = create_tenant_role(cursor, tenant_id)
        copied = statements(read_schema(cursor, TEMPLATE_SCHEMA))
        script = ";\n".join([*copied, *tenant_grants(schema, role)])
        try:
            cursor.execute(
                sql.SQL(
                    "CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema};\n{script};\n"
                    "INSERT INTO {schema}.django_migrations (app, name, applied) "
                    "SELECT app, name, applied FROM {template}.django_migrations ORDER BY id;\n"
                    "SET LOCAL search_path TO public"
                ).format(
                    schema=sql.Identifier(schema),
                    template=sql.Identifier(TEMPLATE_SCHEMA),
                    script=sql.SQL(script),  # its own braces are left alone
                )
            )
        except ProgrammingError as error:
            if not isinstance(error.__cause__, DuplicateSchema):
                raise
            raise SchemaTaken(
                f"The database has a schema {schema!r} that does not belong to a tenant. Delete this tenant and choose "
                "another name, or drop that schema."
            ) from None
        return version_of(cursor, TEMPLATE_SCHEMA)


def create_tenant_role(cursor: CursorWrapper, tenant_id: int) -> str:
    """Create the role that web and workers enter for this tenant; return its name."""
    role = tenant_role(_database(), tenant_id)
    create_role(cursor, role)
    grant_membership(cursor, role=tenants_group(_database()), member=role)
    for login in logins(cursor):
        grant_membership(cursor, role=role, member=login)
    return role


def tenant_grants(schema: str, role: str) -> list[str]:
    """Write the statements that grant a tenant's role its schema, with all present and future tables. Pure."""
    rights = "SELECT, INSERT, UPDATE, DELETE"
    parts = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    templates = (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT {rights} ON ALL TABLES IN SCHEMA {{schema}} TO {{role}}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {{schema}} GRANT {rights} ON TABLES TO {{role}}",
    )
    return [sql.SQL(template).format(**parts).as_string() for template in templates]


# --- migrating
def migrate_schema(schema: str) -> str:
    """Apply the migrations that a tenant's schema lacks; return its version."""
    connection = owner_connection()
    with _owners_cursor() as cursor:

        def progress(action: str, *_: object) -> None:
            if action == "apply_success":
                # All migrations share one transaction: a deferred check of one would keep the next from altering it.
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                cursor.execute("SET CONSTRAINTS ALL DEFERRED")

        try:
            connection.set_schema(schema)
            executor = MigrationExecutor(connection, progress)
            executor.loader.check_consistent_history(connection)
            executor.migrate(executor.loader.graph.leaf_nodes())
        finally:
            connection.set_schema_to_public()
        return version_of(cursor, schema)


# --- dropping
def drop_schema(schema: str) -> None:
    """Drop a tenant's schema; do nothing if it is already gone."""
    with _owners_cursor() as cursor:
        cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def drop_role(tenant_id: int) -> bool:
    """Drop a tenant's role with all that it owns in this database; False if another turn is needed."""
    role = tenant_role(_database(), tenant_id)
    with _owners_cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            return True
        _inherit(cursor, role)
        cursor.execute(UNLINK, [role, LARGE_OBJECTS_AT_ONCE])
        if cursor.fetchone()[0] == LARGE_OBJECTS_AT_ONCE:
            return False
        # Anything else that a role without CREATE can own, such as its own default privileges.
        cursor.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        cursor.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
    return True


def _inherit(cursor: CursorWrapper, role: str) -> None:
    """Let the owner inherit the rights of this role, which it needs to drop the role's objects."""
    option = (
        " WITH INHERIT TRUE" if cursor.connection.info.server_version >= GRANTS_INHERITANCE else ""
    )
    cursor.execute(sql.SQL("GRANT {} TO CURRENT_USER" + option).format(sql.Identifier(role)))


def _owners_cursor() -> CursorWrapper:
    connection = owner_connection()
    if not connection.in_atomic_block:
        raise RuntimeError(
            "a tenant's schema and role are changed inside a transaction of the owner"
        )
    made: CursorWrapper = connection.cursor()
    return made


def _database() -> str:
    return str(settings.DATABASES["default"]["NAME"])
