"""`isolane migrate`: public, the template, then every tenant's schema, beside provisioners that do the same.

Timing: request-time, from a command. Model: sync. Guarantee: idempotent; what is up to date is left alone.
Failure: bubble for public and the template; a tenant that fails is named and the others go on.
"""

import time
from collections.abc import Callable

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from tenants.grants import apply_grants
from tenants.names import TEMPLATE_SCHEMA
from tenants.owner import MIGRATION_LOCK, OWNER, OwnerNeeded, owner_connection
from tenants.provisioner import Done, act_on, behind
from tenants.schemas import login_role, version_of

Say = Callable[[str], None]
WAIT_SECONDS = 0.2


def migrate(on_progress: Say = lambda _: None) -> list[Done]:
    """Bring public, the template and every tenant up to date, and their grants with them; returns what failed."""
    connection = owner_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            ensure_login_role(cursor)
            _migrate("public", on_progress)
            apply_grants(cursor, database=_database(), login=login_role())
            _migrate(TEMPLATE_SCHEMA, on_progress)
            version = version_of(cursor, TEMPLATE_SCHEMA)
        finally:
            connection.set_schema_to_public()
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    return _migrate_tenants(version, on_progress)


def _migrate_tenants(version: str, on_progress: Say) -> list[Done]:
    """Try each tenant once, and wait for those that provisioners hold."""
    failed: dict[int, Done] = {}
    while left := set(behind(version).values_list("id", flat=True)) - failed.keys():
        acted = False
        for tenant_id in sorted(left):
            done = act_on(behind(version).filter(pk=tenant_id))
            acted = acted or done is not None
            if done and done.error:
                failed[tenant_id] = done
            elif done:
                on_progress(done.schema)
        if not acted:
            time.sleep(WAIT_SECONDS)
    return list(failed.values())


def migrate_new_schema(schema: str) -> None:
    """Make a schema the slow way, by replaying migrations; cloning is measured against this."""
    connection = owner_connection()
    try:
        _migrate(schema, lambda _: None)
    finally:
        connection.set_schema_to_public()


def _migrate(schema: str, on_progress: Say) -> None:
    connection = owner_connection()
    connection.set_schema_to_public()
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    on_progress(schema)
    connection.set_schema(schema)
    call_command(DjangoMigrate(), database=OWNER, interactive=False, verbosity=0)


def ensure_login_role(cursor: CursorWrapper) -> None:
    """Create the login role of DATABASE_URL unless it exists, and refuse one that would see everything."""
    user, password = login_role(), settings.DATABASES["default"]["PASSWORD"]
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


def _database() -> str:
    return str(settings.DATABASES["default"]["NAME"])
