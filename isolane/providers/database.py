"""PostgreSQL, through one connection of psycopg 3 per handle.

Timing: connecting takes `connect_timeout_s` at most; a statement any time, or `statement_timeout_s`.
Model: sync; threads may share a handle, their statements are serialised.
Guarantee: tagged by its application_name; one transaction per statement, unless a step begins one.
Failure: psycopg's own errors; a connection that is disposed of, or lost, raises and never connects again.
"""

import contextlib
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from isolane.protocol import Grant
from isolane.providers.base import Provider
from isolane.shapes import build

if TYPE_CHECKING:
    from psycopg import Connection

# From this version on the server itself detects, during a statement, that its client is gone.
_NOTICES = 140_000
_NOTICE = "SET client_connection_check_interval = '1s'"
_RELEASE_SECONDS = 1.0  # for a thread whose connection was shut down
_SIGN_OF_LIFE = """
    SELECT pg_backend_pid() AS pid, current_user::text AS "user", current_setting('server_version') AS server_version
"""


@dataclass(frozen=True, kw_only=True)
class Mint:
    """Lets the worker create a role for each placement."""

    roles: tuple[str, ...]  # that the new role is a member of

    def __post_init__(self) -> None:
        if not self.roles or not all(self.roles):
            raise ValueError(
                "mint.roles: name at least one role that the run's own role is to be a member of"
            )


@dataclass(frozen=True, kw_only=True)
class DatabaseConfig:
    """The address of a database, and the user that connects."""

    host: str
    dbname: str
    user: str
    port: int = 5432
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    connect_timeout_s: int = 5
    statement_timeout_s: float | None = None
    mint: Mint | None = None

    def __post_init__(self) -> None:
        for name in ("host", "dbname", "user"):
            text = getattr(self, name)
            if not text or "\0" in text:
                raise ValueError(f"{name}: {text!r} is empty or contains a NUL")
        _within("port", self.port, 1, 65_535)
        _within("connect_timeout_s", self.connect_timeout_s, 1, 60)
        if self.statement_timeout_s is not None:
            _within("statement_timeout_s", self.statement_timeout_s, 0.001, 86_400)


class Database(Provider["Connection[dict[str, Any]]"]):
    """Opens connections that return rows as dicts."""

    type = "database"
    config = DatabaseConfig
    secrets: ClassVar = {"password": "of the user"}

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse `mint` without a password: the worker could not log in."""
        if config.mint is not None and "password" not in secrets:
            raise ValueError(
                "secrets.password: missing, and with `mint` the worker logs in as this user"
            )

    def create(self, grant: Grant, tag: str) -> "Connection[dict[str, Any]]":
        """Connect, to the address that the worker allowed, if it named one."""
        import psycopg  # noqa: PLC0415 - only runtimes need the driver
        from psycopg.rows import dict_row  # noqa: PLC0415

        config: DatabaseConfig = build(DatabaseConfig, grant.config, "config")
        connection = psycopg.connect(
            host=config.host,
            hostaddr=grant.address or None,
            port=config.port,
            dbname=config.dbname,
            user=config.user,
            password=grant.secrets.get("password"),
            sslmode=config.sslmode,
            sslrootcert=root_certificates(config.sslmode),
            connect_timeout=config.connect_timeout_s,
            application_name=tag,
            options=_options(config),
            autocommit=True,
            row_factory=dict_row,
        )
        try:
            if connection.info.server_version >= _NOTICES:
                # Not every operating system supports it; then a killed run's statement ends by itself.
                with contextlib.suppress(psycopg.DatabaseError):
                    connection.execute(_NOTICE)
        except BaseException:
            connection.close()
            raise
        return connection

    def check(self, handle: "Connection[dict[str, Any]]") -> dict[str, Any]:
        """Ask the server for its id of this session."""
        found = handle.execute(_SIGN_OF_LIFE).fetchone()
        return dict(found or {})

    def is_broken(self, handle: "Connection[dict[str, Any]]") -> bool:
        """Say whether it was lost, closed by a step, or left in a failed transaction, where every statement fails."""
        from psycopg.pq import TransactionStatus  # noqa: PLC0415 - only runtimes need the driver

        return handle.closed or handle.pgconn.transaction_status == TransactionStatus.INERROR

    def dispose(self, handle: "Connection[dict[str, Any]]") -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        if handle.closed:
            return
        if not handle.lock.acquire(blocking=False):
            # A thread waits for an answer. If the connection were freed now, that thread would read from whatever
            # gets its descriptor next; so its wait is ended first.
            _hang_up(handle.fileno())
            if not handle.lock.acquire(timeout=_RELEASE_SECONDS):
                raise RuntimeError("shut down, but a thread still uses it")
        try:
            handle.close()
        finally:
            handle.lock.release()


def root_certificates(sslmode: str) -> str | None:
    """Return the public authorities, if the server is verified; libpq would search a home, which runtimes lack."""
    import certifi  # noqa: PLC0415 - only needed to connect

    return certifi.where() if sslmode.startswith("verify-") else None


def _hang_up(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as same, contextlib.suppress(OSError):
        same.shutdown(socket.SHUT_RDWR)


def _options(config: DatabaseConfig) -> str | None:
    if config.statement_timeout_s is None:
        return None
    return f"-c statement_timeout={max(1, round(config.statement_timeout_s * 1000))}"


def _within(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise ValueError(f"{name}: {number!r} is not between {least} and {most}")
