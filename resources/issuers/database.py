"""The issuer of PostgreSQL roles: one role per placement, where the definition has `mint`.

No run can hold a lock that its own revocation waits for after its sessions have ended.

Timing: while a placement opens, closes or is swept.
Model: sync, on a connection of its own each time.
Guarantee: idempotent; a role is made in one transaction; a revocation waits for it, so none appears later.
Failure: IssueError; a role that may be left is revoked again later, and expires by its `VALID UNTIL`.
"""

import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, ClassVar, LiteralString

from psycopg import sql
from psycopg.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InternalError_,
    LockNotAvailable,
    ReadOnlySqlTransaction,
    UniqueViolation,
)
from psycopg.rows import TupleRow

from isolane.protocol import Grant
from resources.issuers.base import Credential, IssueError, Issuer, ResourceRequest
from resources.issuers.remote_postgres import RemoteConnection, remote_connection

KIND = "database.role"
_SPARE_SECONDS = 60  # between the run's deadline and the end of its role
_CONNECTIONS = 10  # of one placement
_TERMINATE_MS = 500
_GRANTS_WITH_OPTIONS = 160_000  # the server's version, as libpq counts
_KEPT = ("host", "dbname", "user")

_UNTIL = "SELECT to_char((now() + make_interval(secs => %s)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00')"
# Per requested role: whether it exists, and whose privileges a member of it could get by SET ROLE.
_REQUESTED_ROLES = """
SELECT name, r.oid IS NOT NULL,
       EXISTS (SELECT FROM pg_roles p WHERE p.rolsuper AND pg_has_role(r.oid, p.oid, 'MEMBER')),
       EXISTS (SELECT FROM pg_roles p WHERE p.rolcreaterole AND pg_has_role(r.oid, p.oid, 'MEMBER')),
       pg_has_role(r.oid, current_user, 'MEMBER')
  FROM unnest(%s::text[]) AS name LEFT JOIN pg_roles r ON r.rolname = name
"""
_ROLE = "SELECT oid FROM pg_roles WHERE rolname = %s"
_TERMINATE = "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE usesysid = %s"
_WAIT_BRIEFLY = "SET LOCAL lock_timeout = '500ms'"
# The run may have used any database that everybody may connect to.
_ELSEWHERE = """
SELECT DISTINCT datname FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid
 WHERE refclassid = 'pg_authid'::regclass AND refobjid = %s AND datname <> current_database()
"""


class DatabaseIssuer(Issuer):
    """Creates roles with an administrator's login, which needs CREATEROLE, no superuser, and stays in the worker."""

    type: ClassVar[str] = "database"

    def plan(self, request: ResourceRequest) -> Sequence[Credential]:
        """Return one role, or nothing where the definition's own login is used."""
        if not request.config.get("mint"):
            return ()
        return (Credential(kind=KIND, remote_id=_role_name(request), data=_login(request)),)

    def issue(self, request: ResourceRequest, credentials: Sequence[Credential]) -> Grant:
        """Create the role, valid until the run's deadline."""
        config = {name: value for name, value in request.config.items() if name != "mint"}
        if not credentials:
            return request.grant(config=config)
        (credential,) = credentials
        password = secrets.token_urlsafe(32)
        with remote_connection(credential.data) as connection:
            _mint(connection, credential, password, request.seconds_left)
        return request.grant(
            config={**config, "user": credential.remote_id}, secrets={"password": password}
        )

    def revoke(self, credential: Credential) -> None:
        """Lock the role out, hand its objects to the roles that it was a member of, and drop it.

        Other sessions that use its objects can delay the rest, never the lock-out. Two things can, until its
        `VALID UNTIL`: its prepared transactions, where the server allows these, and sessions that cannot be
        terminated, such as a loop in PL/Perl.
        """
        with remote_connection(credential.data) as connection:
            oid = _committed_oid(connection, credential.remote_id)
            if oid is not None:
                _drop(connection, credential, oid)


def _role_name(request: ResourceRequest) -> str:
    # Two definitions of a run may be on one server, and their names would not fit into 63 bytes.
    definition = sha256(request.definition.encode()).hexdigest()[:8]
    return f"iso_{request.execution_id.hex}_{request.epoch}_{definition}"


def _login(request: ResourceRequest) -> dict[str, Any]:
    config = request.config
    return {
        **{name: config[name] for name in _KEPT},
        "port": config.get("port", 5432),
        "sslmode": config.get("sslmode", "prefer"),
        "ca": config.get("ca", ""),
        "password": request.secrets.get("password", ""),
        "address": request.address,
        "roles": [str(name) for name in request.config["mint"]["roles"]],
    }


def _mint(
    connection: RemoteConnection, credential: Credential, password: str, seconds: float
) -> None:
    role, requested = credential.remote_id, credential.data["roles"]
    with connection.transaction():
        until = connection.execute(_UNTIL, [max(0.0, seconds) + _SPARE_SECONDS]).fetchone()
        # Hashed here: the server's log may contain statements.
        verifier = connection.pgconn.encrypt_password(
            password.encode(), role.encode(), b"scram-sha-256"
        )
        _run(
            connection,
            "CREATE ROLE {role} LOGIN INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
            " CONNECTION LIMIT {most} VALID UNTIL {until} PASSWORD {verifier}",
            role=sql.Identifier(role),
            most=sql.Literal(_CONNECTIONS),
            until=sql.Literal(until[0] if until else None),
            verifier=sql.Literal(verifier.decode()),
        )
        # Only now: once the role is created, a revocation waits. A refusal rolls the role back.
        for found in connection.execute(_REQUESTED_ROLES, [requested]).fetchall():
            _refuse_unsafe(found)
        for name in requested:
            _grant(connection, name, sql.Identifier(role))


def _refuse_unsafe(row: TupleRow) -> None:
    name, exists, superuser, makes_roles, administrator = row
    if not exists:
        reason = "does not exist there; name roles that do"
    elif superuser:
        reason = "has a superuser's privileges; name a role with no more than runs need"
    elif administrator:
        reason = "has the administrator's own privileges; name another role"
    elif makes_roles:
        reason = "may create roles, which would outlive the run; name another role"
    else:
        return
    raise IssueError(f"mint.roles: {name!r} {reason}.")


def _grant(
    connection: RemoteConnection, role: str, to: sql.Composable, *, entered: bool = False
) -> None:
    """Grant without SET where the server allows: objects of the run are then its own, and found when it ends."""
    statement: LiteralString = "GRANT {role} TO {to}"
    if connection.info.server_version >= _GRANTS_WITH_OPTIONS:
        statement += f" WITH INHERIT TRUE, SET {'TRUE' if entered else 'FALSE'}"
    _run(connection, statement, role=sql.Identifier(role), to=to)


def _committed_oid(connection: RemoteConnection, name: str) -> int | None:
    """Return the role's oid, if it exists, after waiting for a transaction that is just creating it.

    Creating a role waits for another transaction that creates one of that name. A run cannot take that lock, as it
    could an advisory one.
    """
    oid = _oid(connection, name)
    if oid is None:
        try:
            with connection.transaction(force_rollback=True):
                _run(connection, "CREATE ROLE {role} NOLOGIN", role=sql.Identifier(name))
        except (DuplicateObject, UniqueViolation):
            oid = _oid(connection, name)
        except (InsufficientPrivilege, ReadOnlySqlTransaction):
            return None  # nor can this login be creating it at the moment
    return oid


def _oid(connection: RemoteConnection, name: str) -> int | None:
    found = connection.execute(_ROLE, [name]).fetchone()
    return found[0] if found else None


def _drop(connection: RemoteConnection, credential: Credential, oid: int) -> None:
    role, heirs = sql.Identifier(credential.remote_id), credential.data["roles"]
    # Ending its sessions needs its privileges, handing over its objects those of the heirs; both go with the role.
    _grant(connection, credential.remote_id, sql.SQL("CURRENT_USER"), entered=True)
    _lock_out(connection, role, oid)
    for heir in heirs:
        _grant(connection, heir, role, entered=True)
    _empty(connection, role, heirs)
    for (dbname,) in connection.execute(_ELSEWHERE, [oid]).fetchall():
        with remote_connection(
            credential.data, dbname=dbname, deadline=connection.deadline
        ) as other:
            _empty(other, role, heirs)
    _run(connection, "DROP ROLE IF EXISTS {role}", role=role)


def _lock_out(connection: RemoteConnection, role: sql.Identifier, oid: int) -> None:
    """End its sessions, and let none begin.

    Sessions are terminated before the role is altered: one that changed its own password in an open transaction
    locks the role.
    """
    is_open = True
    while is_open:
        connection.execute(_TERMINATE, [0, oid])
        try:
            with connection.transaction():
                connection.execute(_WAIT_BRIEFLY)
                _run(connection, "ALTER ROLE {role} NOLOGIN", role=role)
            is_open = False
        # Locked by a newer session, or changed meanwhile.
        except (LockNotAvailable, InternalError_):
            connection.check_time()
    while connection.execute(_TERMINATE, [_TERMINATE_MS, oid]).fetchall():
        connection.check_time()


def _empty(connection: RemoteConnection, role: sql.Identifier, heirs: Sequence[str]) -> None:
    """Give its objects in this database to the first heir that may own them, and drop its privileges.

    Never to the administrator: a view or function that a run left would then run with an administrator's privileges.
    """
    for position, heir in enumerate(heirs, start=1):
        try:
            _run(
                connection,
                "REASSIGN OWNED BY {role} TO {heir}",
                role=role,
                heir=sql.Identifier(heir),
            )
            break
        except InsufficientPrivilege:
            if position == len(heirs):
                raise
    _run(connection, "DROP OWNED BY {role}", role=role)


def _run(connection: RemoteConnection, statement: LiteralString, **parts: sql.Composable) -> None:
    connection.execute(sql.SQL(statement).format(**parts))
