"""Rights of the platform's roles on the server beyond what they need; only a superuser can revoke them."""

from django.conf import settings
from psycopg import sql

from tenants.database_logins import logins
from tenants.names import tenants_group
from tenants.owner import owner_connection

OTHER_DATABASES = """
SELECT datname, login FROM pg_database, unnest(%s::text[]) AS login
WHERE datallowconn AND datname <> current_database()
  AND (has_database_privilege(login, oid, 'CONNECT') OR has_database_privilege(login, oid, 'TEMP'))"""
# They create or fill large objects: the only objects a tenant's role can own, and their number has no limit.
LARGE_OBJECT_FUNCTIONS = (
    "lo_creat(integer)",
    "lo_create(oid)",
    "lo_from_bytea(oid, bytea)",
    "lo_put(oid, bigint, bytea)",
    "lowrite(integer, bytea)",
    "lo_truncate(integer, integer)",
    "lo_truncate64(integer, bigint)",
)
USABLE = (
    "SELECT name FROM unnest(%s::text[]) AS name WHERE has_function_privilege(%s, name, 'EXECUTE')"
)


def exposures() -> list[str]:
    """Return sentences for the operator, each with the statement that fixes it; none if all is well."""
    found = []
    with owner_connection().cursor() as cursor:
        cursor.execute(OTHER_DATABASES, [logins(cursor)])
        if rows := cursor.fetchall():
            databases, roles = (sorted(set(column)) for column in zip(*rows, strict=True))
            named = sql.SQL(", ").join(map(sql.Identifier, databases)).as_string()
            found.append(
                f"the roles {', '.join(map(repr, roles))} may connect to other databases of the server. "
                f"As a superuser: REVOKE CONNECT, TEMPORARY ON DATABASE {named} FROM PUBLIC;"
            )
        group = tenants_group(str(settings.DATABASES["default"]["NAME"]))
        cursor.execute(USABLE, [list(LARGE_OBJECT_FUNCTIONS), group])
        if functions := [row[0] for row in cursor.fetchall()]:
            found.append(
                "tenants' roles may create large objects. As a superuser, in this database: "
                f"REVOKE EXECUTE ON FUNCTION {', '.join(functions)} FROM PUBLIC;"
            )
    return found
