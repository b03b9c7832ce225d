"""`isolane migrate`: public, the template, then every tenant's schema, beside provisioners that do the same.

Timing: request-time, from a command.
Model: sync.
Guarantee: idempotent; a schema that is up to date is left alone.
Failure: bubble for public and the template; a tenant that fails is reported and the others go on.
"""

import time
from collections.abc import Callable

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.migrate import Command as DjangoMigrate
from psycopg import sql

from tenants.database_logins import ensure_login, let_worker_in, web_login, worker_login
from tenants.grants import apply_grants
from tenants.names import TEMPLATE_SCHEMA
from tenants.owner import MIGRATION_LOCK, OWNER, owner_connection
from tenants.provisioner import Done, act_on, behind
from tenants.schemas import version_of

OnProgress = Callable[[str], None]
WAIT_SECONDS = 0.2


def migrate(on_progress: OnProgress = lambda _: None) -> list[Done]:
    """Bring public, the template and every tenant up to date, with their grants; return what failed."""
    connection, web, worker = owner_connection(), web_login(), worker_login()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            for login in filter(None, (web, worker)):
                ensure_login(cursor, login)
            _migrate("public", on_progress)
            apply_grants(cursor, database=_database(), login=web.user)
            if worker:
                let_worker_in(cursor, worker.user)
            _migrate(TEMPLATE_SCHEMA, on_progress)
            version = version_of(cursor, TEMPLATE_SCHEMA)
        finally:
            connection.set_schema_to_public()
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    return _migrate_tenants(version, on_progress)


def _migrate_tenants(version: str, on_progress: OnProgress) -> list[Done]:
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
    """Create a schema the slow way, by replaying migrations; cloning is measured against this."""
    connection = owner_connection()
    try:
        _migrate(schema, lambda _: None)
    finally:
        connection.set_schema_to_public()


def _migrate(schema: str, on_progress: OnProgress) -> None:
    connection = owner_connection()
    connection.set_schema_to_public()
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    on_progress(schema)
    connection.set_schema(schema)
    call_command(DjangoMigrate(), database=OWNER, interactive=False, verbosity=0)


def _database() -> str:
    return str(settings.DATABASES["default"]["NAME"])
