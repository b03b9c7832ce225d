"""Roles, grants and row-level security of the shared schema; applied by every migration, as the owner.

A shared table that has a `tenant_id` column gets row-level security without a declaration.
"""

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from tenants.names import platform_role, tenants_group, worker_platform_role
from tenants.rights import NO_RIGHTS, PACKAGE_TABLES, DatabaseRights

POLICIES = ("tenant_rows", "platform_rows", "login_rows", "worker_rows", "worker_changes")
TENANT_ID_FUNCTION = """
CREATE OR REPLACE FUNCTION public.isolane_tenant_id() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
    SELECT CASE WHEN starts_with(current_user, current_database() || '_t_')
           THEN substr(current_user, length(current_database()) + 4)::bigint END
$$"""


def apply_grants(cursor: CursorWrapper, *, database: str, login: str) -> None:
    """Bring roles, grants and policies to what the models declare; `login` is web's. Idempotent."""
    platform, group = platform_role(database), tenants_group(database)
    worker = worker_platform_role(database)
    for role in (platform, worker, group):
        create_role(cursor, role)
    grant_membership(cursor, role=platform, member=login)
    names = {
        "platform": _id(platform),
        "worker": _id(worker),
        "group": _id(group),
        "login": _id(login),
        "db": _id(database),
    }
    for statement in (
        "REVOKE ALL ON DATABASE {db} FROM PUBLIC",
        "GRANT CONNECT ON DATABASE {db} TO {login}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO {login}, {platform}, {worker}, {group}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {platform}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {platform}",
    ):
        cursor.execute(sql.SQL(statement).format(**names))
    cursor.execute(TENANT_ID_FUNCTION)
    for table, has_tenant_id, rights in shared_tables():
        # In one transaction: running processes must not miss a right that is revoked and granted again.
        with transaction.atomic(using=cursor.db.alias):
            _grant(cursor, table, rights, names)
            if has_tenant_id or rights.worker_changes:
                policies = row_policies(rights, of_tenants=has_tenant_id)
                _secure_rows(cursor, table, policies, names)


def shared_tables() -> Iterator[tuple[str, bool, DatabaseRights]]:
    """Yield every table of public: its name, True if its rows belong to tenants, and the declared rights."""
    for config in apps.get_app_configs():
        if config.name not in settings.SHARED_APPS:
            continue
        for model in config.get_models(include_auto_created=True):
            table = model._meta.db_table
            columns = {field.column for field in model._meta.concrete_fields}
            rights = getattr(model, "database_rights", PACKAGE_TABLES.get(table, NO_RIGHTS))
            yield table, "tenant_id" in columns, rights


def create_role(cursor: CursorWrapper, role: str, attributes: str = "NOLOGIN") -> None:
    """Create a role unless it exists."""
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE ROLE {} " + attributes).format(_id(role)))


def grant_membership(cursor: CursorWrapper, *, role: str, member: str) -> None:
    """Let the member SET ROLE to the role; the member's own attribute decides about inheritance."""
    cursor.execute(sql.SQL("GRANT {} TO {}").format(_id(role), _id(member)))


def _grant(
    cursor: CursorWrapper, table: str, rights: DatabaseRights, names: dict[str, sql.Identifier]
) -> None:
    roles = (("login", rights.login), ("group", rights.tenant), ("worker", rights.worker))
    for role, granted in roles:
        target = {"table": _id("public", table), "role": names[role]}
        cursor.execute(sql.SQL("REVOKE ALL ON {table} FROM {role}").format(**target))
        for right in granted:
            cursor.execute(sql.SQL("GRANT " + right + " ON {table} TO {role}").format(**target))
    for sequence in rights.worker_sequences:
        counted = {"sequence": _id("public", sequence), **names}
        cursor.execute(
            sql.SQL("GRANT USAGE, SELECT ON SEQUENCE {sequence} TO {worker}").format(**counted)
        )


def row_policies(rights: DatabaseRights, *, of_tenants: bool) -> dict[str, tuple[str, str]]:
    """Return, by name, each policy's target and the rows it lets through. Pure."""
    policies = {"platform_rows": ("TO {platform}", "true")}
    if of_tenants:
        own = "tenant_id = (SELECT public.isolane_tenant_id())"
        policies["tenant_rows"] = ("TO {group}", own)
    if rights.login:
        policies["login_rows"] = ("FOR SELECT TO {login}", "true")
    if rights.worker_changes:
        policies["worker_rows"] = ("FOR SELECT TO {worker}", "true")
        policies["worker_changes"] = ("FOR UPDATE TO {worker}", rights.worker_changes)
    elif rights.worker:
        policies["worker_rows"] = ("TO {worker}", "true")
    return policies


def _secure_rows(
    cursor: CursorWrapper,
    table: str,
    policies: dict[str, tuple[str, str]],
    names: dict[str, sql.Identifier],
) -> None:
    formats = {**names, "table": _id("public", table)}
    cursor.execute(sql.SQL("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY").format(**formats))
    for policy in POLICIES:
        cursor.execute(sql.SQL("DROP POLICY IF EXISTS " + policy + " ON {table}").format(**formats))
    for policy, (target, condition) in policies.items():
        check = "" if "SELECT" in target else f" WITH CHECK ({condition})"
        statement = f"CREATE POLICY {policy} ON {{table}} {target} USING ({condition}){check}"
        cursor.execute(sql.SQL(statement).format(**formats))


def _id(*parts: str) -> sql.Identifier:
    return sql.Identifier(*parts)
