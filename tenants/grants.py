"""Roles, grants and row-level security of the shared schema; applied by every migration, as the owner.

A shared table that has a `tenant_id` column gets row-level security, whether or not anybody thought of it.
"""

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from tenants.names import platform_role, tenants_group
from tenants.rights import NO_RIGHTS, PACKAGE_TABLES, DatabaseRights

TENANT_ID_FUNCTION = """
CREATE OR REPLACE FUNCTION public.isolane_tenant_id() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
    SELECT CASE WHEN starts_with(current_user, current_database() || '_t_')
           THEN substr(current_user, length(current_database()) + 4)::bigint END
$$"""


def apply_grants(cursor: CursorWrapper, *, database: str, login: str) -> None:
    """Make roles, grants and policies what the models declare; changes nothing when they already are."""
    platform, group = platform_role(database), tenants_group(database)
    for role in (platform, group):
        create_role(cursor, role)
    grant_membership(cursor, role=platform, member=login)
    names = {
        "platform": _id(platform),
        "group": _id(group),
        "login": _id(login),
        "db": _id(database),
    }
    for statement in (
        "REVOKE ALL ON DATABASE {db} FROM PUBLIC",
        "GRANT CONNECT ON DATABASE {db} TO {login}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO {login}, {platform}, {group}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {platform}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {platform}",
    ):
        cursor.execute(sql.SQL(statement).format(**names))
    cursor.execute(TENANT_ID_FUNCTION)
    for table, has_tenant_id, rights in shared_tables():
        _grant(cursor, table, rights, names)
        if has_tenant_id:
            _secure_rows(cursor, table, rights, names)


def shared_tables() -> Iterator[tuple[str, bool, DatabaseRights]]:
    """Every table of public: its name, whether its rows belong to tenants, and the declared rights."""
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
    """Let the member SET ROLE to the role; whether it inherits is the member's own attribute."""
    cursor.execute(sql.SQL("GRANT {} TO {}").format(_id(role), _id(member)))


def _grant(
    cursor: CursorWrapper, table: str, rights: DatabaseRights, names: dict[str, sql.Identifier]
) -> None:
    for role, granted in (("login", rights.login), ("group", rights.tenant)):
        target = {"table": _id("public", table), "role": names[role]}
        cursor.execute(sql.SQL("REVOKE ALL ON {table} FROM {role}").format(**target))
        for right in granted:
            cursor.execute(sql.SQL("GRANT " + right + " ON {table} TO {role}").format(**target))


def _secure_rows(
    cursor: CursorWrapper, table: str, rights: DatabaseRights, names: dict[str, sql.Identifier]
) -> None:
    policies = {
        "tenant_rows": ("TO {group}", "tenant_id = (SELECT public.isolane_tenant_id())"),
        "platform_rows": ("TO {platform}", "true"),
    }
    if rights.login:
        policies["login_rows"] = ("FOR SELECT TO {login}", "true")
    formats = {**names, "table": _id("public", table)}
    cursor.execute(sql.SQL("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY").format(**formats))
    for policy in ("tenant_rows", "platform_rows", "login_rows"):
        cursor.execute(sql.SQL("DROP POLICY IF EXISTS " + policy + " ON {table}").format(**formats))
    for policy, (target, condition) in policies.items():
        check = "" if "SELECT" in target else f" WITH CHECK ({condition})"
        statement = f"CREATE POLICY {policy} ON {{table}} {target} USING ({condition}){check}"
        cursor.execute(sql.SQL(statement).format(**formats))


def _id(*parts: str) -> sql.Identifier:
    return sql.Identifier(*parts)
