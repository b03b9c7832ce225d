"""Tenants' schemas from before the migrations of today."""

import psycopg
from psycopg import sql

Server = psycopg.Connection[tuple[object, ...]]


def outdate(server: Server, schema: str, *, broken: bool = False) -> None:
    """Undo all migrations of one app; in a broken schema its tables stay, so that they cannot be applied again."""
    if not broken:
        owned = server.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE 'executions%%'",
            [schema],
        ).fetchall()
        tables = sql.SQL(", ").join(sql.Identifier(schema, str(row[0])) for row in owned)
        server.execute(sql.SQL("DROP TABLE {}").format(tables))
    history = sql.Identifier(schema, "django_migrations")
    server.execute(sql.SQL("DELETE FROM {} WHERE app = 'executions'").format(history))
    server.execute(
        "UPDATE tenants_tenant SET schema_version = 'old' WHERE schema_name = %s", [schema]
    )
