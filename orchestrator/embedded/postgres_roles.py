"""The database and roles of the platform, as an operator would create them on another server."""

from __future__ import annotations

import psycopg
from psycopg import sql

DATABASE = "isolane"
OWNER = "isolane_owner"
LOGIN = "isolane_login"  # of web
WORKER = "isolane_worker"

# Every attribute is named, so that a role that was changed by hand is corrected.
OWNER_ATTRIBUTES = sql.SQL(
    "LOGIN INHERIT CREATEROLE NOCREATEDB NOSUPERUSER NOREPLICATION NOBYPASSRLS"
)
LOGIN_ATTRIBUTES = sql.SQL(
    "LOGIN NOINHERIT NOCREATEROLE NOCREATEDB NOSUPERUSER NOREPLICATION NOBYPASSRLS"
)
# The databases that every server has, and that every role may connect to by default.
OTHER_DATABASES = sql.SQL("REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC")
# Large objects are the only objects that a tenant's role could create.
LARGE_OBJECTS = sql.SQL(
    "REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), "
    "lo_put(oid, bigint, bytea), lowrite(integer, bytea), lo_truncate(integer, integer), "
    "lo_truncate64(integer, bigint) FROM PUBLIC"
)


def bootstrap(
    connection: psycopg.Connection[tuple[object, ...]],
    *,
    owner_password: str,
    login_password: str,
    worker_password: str,
) -> None:
    """Create what is missing; `connection` is a superuser's, in autocommit."""
    _ensure_role(connection, OWNER, OWNER_ATTRIBUTES, owner_password)
    _ensure_role(connection, LOGIN, LOGIN_ATTRIBUTES, login_password)
    _ensure_role(connection, WORKER, LOGIN_ATTRIBUTES, worker_password)
    _ensure_database(connection)
    connection.execute(OTHER_DATABASES)


def bootstrap_database(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Revoke unneeded rights in the platform's database from PUBLIC; `connection` is a superuser's to it."""
    connection.execute(LARGE_OBJECTS)


def _ensure_role(
    connection: psycopg.Connection[tuple[object, ...]],
    name: str,
    attributes: sql.SQL,
    password: str,
) -> None:
    found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
    # Hashed here, so that the password is in no log and no statistics of the server.
    hashed = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    connection.execute(
        sql.SQL("{verb} ROLE {name} {attributes} PASSWORD {password}").format(
            verb=sql.SQL("ALTER" if found else "CREATE"),
            name=sql.Identifier(name),
            attributes=attributes,
            password=sql.Literal(hashed),
        )
    )


def _ensure_database(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    database, owner = sql.Identifier(DATABASE), sql.Identifier(OWNER)
    found = connection.execute(
        "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
    ).fetchone()
    if not found:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, owner))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    for login in map(sql.Identifier, (LOGIN, WORKER)):
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, login))
