"""Making and ending tenants: row, schema and role together, in one transaction, as the owner.

Timing: request-time (create) and background-worker (purge). Model: sync.
Guarantee: exactly-once; PostgreSQL's DDL is transactional, a second try finds either all or nothing.
Failure: bubble; nothing is half-made.
"""

import logging
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.connection import ConnectionDoesNotExist
from psycopg import sql

from orchestrator.core.errors import IsolaneError
from tenants.cloning import read_schema, statements
from tenants.grants import apply_grants, create_role, grant_membership
from tenants.models import Tenant
from tenants.names import TEMPLATE_SCHEMA, tenant_role, tenants_group
from tenants.postgresql.base import DatabaseWrapper

OWNER = "owner"
MIGRATION_LOCK = 7_231_001  # an arbitrary number: one migration at a time per database
logger = logging.getLogger(__name__)


class OwnerNeeded(IsolaneError):
    """This process was not given the owner's URL."""

    code = "owner_needed"
    http_status = 503
    title = "This process cannot do that"


def owner_connection() -> DatabaseWrapper:
    """The connection that may change schemas and roles."""
    try:
        return cast("DatabaseWrapper", connections[OWNER])
    except ConnectionDoesNotExist:
        raise OwnerNeeded(
            "Tenants are made and migrated with the owner's rights: set DATABASE_OWNER_URL for this process."
        ) from None


def has_owner() -> bool:
    """Say whether this process can provision."""
    return OWNER in settings.DATABASES


# --- migrations
def migrate(on_progress: Callable[[str], None] = lambda _: None) -> None:
    """Bring public, the template and every tenant up to date, and their grants with them."""
    connection = owner_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            ensure_login_role(cursor)
            _migrate_schema("public", on_progress)
            apply_grants(cursor, database=_database(), login=_login())
            _migrate_schema(TEMPLATE_SCHEMA, on_progress)
            for tenant in Tenant.objects.using(OWNER).order_by("id"):
                _migrate_schema(tenant.schema_name, on_progress)
        finally:
            connection.set_schema_to_public()
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def migrate_new_schema(schema: str) -> None:
    """Make a schema the slow way, by replaying migrations; cloning is measured against this."""
    connection = owner_connection()
    try:
        _migrate_schema(schema, lambda _: None)
    finally:
        connection.set_schema_to_public()


def _migrate_schema(schema: str, on_progress: Callable[[str], None]) -> None:
    connection = owner_connection()
    connection.set_schema_to_public()
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    on_progress(schema)
    connection.set_schema(schema)
    call_command(DjangoMigrate(), database=OWNER, interactive=False, verbosity=0)


def ensure_login_role(cursor: CursorWrapper) -> None:
    """Create the login role of DATABASE_URL unless it exists, and refuse one that would see everything."""
    user, password = _login(), settings.DATABASES["default"]["PASSWORD"]
    cursor.execute(
        "SELECT rolinherit, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = %s", [user]
    )
    row = cursor.fetchone()
    if row is None:
        # Hashed here, so that the password is in no log and no statistics of the server.
        hashed = cursor.connection.pgconn.encrypt_password(password.encode(), user.encode())
        statement = sql.SQL("CREATE ROLE {} LOGIN NOINHERIT PASSWORD {}")
        cursor.execute(statement.format(sql.Identifier(user), sql.Literal(hashed.decode())))
    elif any(row):
        raise OwnerNeeded(
            f"The role {user!r} of DATABASE_URL must be NOINHERIT and neither SUPERUSER nor BYPASSRLS, or one "
            f'tenant could read another: ALTER ROLE "{user}" NOINHERIT NOSUPERUSER NOBYPASSRLS.'
        )


# --- one tenant
def create_schema(tenant_id: int, schema: str) -> None:
    """Clone the template and make the tenant's role; the caller's transaction on the owner's connection holds it."""
    connection = owner_connection()
    if not connection.in_atomic_block:
        raise RuntimeError("create_schema needs a transaction on the owner's connection")
    with connection.cursor() as cursor:
        role = create_tenant_role(cursor, tenant_id)
        copied = statements(read_schema(cursor, TEMPLATE_SCHEMA))
        script = ";\n".join([*copied, *tenant_grants(schema, role)])
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


def create_tenant_role(cursor: CursorWrapper, tenant_id: int) -> str:
    """Make the role that the login role enters to be this tenant; returns its name."""
    role = tenant_role(_database(), tenant_id)
    create_role(cursor, role)
    grant_membership(cursor, role=tenants_group(_database()), member=role)
    grant_membership(cursor, role=role, member=_login())
    return role


def tenant_grants(schema: str, role: str) -> list[str]:
    """Write the statements that give a tenant's role its schema, with all tables of today and tomorrow. Pure."""
    rights = "SELECT, INSERT, UPDATE, DELETE"
    parts = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    templates = (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT {rights} ON ALL TABLES IN SCHEMA {{schema}} TO {{role}}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {{schema}} GRANT {rights} ON TABLES TO {{role}}",
    )
    return [sql.SQL(template).format(**parts).as_string() for template in templates]


def drop_schema(tenant_id: int, schema: str) -> None:
    """Drop the tenant's schema and role; does nothing for what is already gone."""
    role = tenant_role(_database(), tenant_id)
    with transaction.atomic(using=OWNER), owner_connection().cursor() as cursor:
        cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is not None:
            cursor.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def _database() -> str:
    return str(settings.DATABASES["default"]["NAME"])


def _login() -> str:
    return str(settings.DATABASES["default"]["USER"])
