"""PostgreSQL, through one connection of psycopg 3 per handle.

Timing: connecting takes `connect_timeout_s` at most; a statement any time, or `statement_timeout_s`.
Model: sync; threads may share a handle, their statements are serialised.
Guarantee: tagged by its application_name; one transaction per statement, unless a step begins one.
Failure: psycopg's own errors; a connection that is disposed of, or lost, raises and never connects again.
"""

import contextlib
import os
import socket
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from isolane.protocol import Grant
from isolane.providers.base import Provider
from isolane.providers.certificates import fault_in
from isolane.shapes import build

if TYPE_CHECKING:
    from psycopg import Connection

# From this version on the server itself detects, during a statement, that its client is gone.
_NOTICES = 140_000
_NOTICE = "SET client_connection_check_interval = '1s'"
_BROKER_SECONDS = (
    2  # more for a broker, which has the definition's time and then says why it cannot log in
)
_RELEASE_SECONDS = 1.0  # for a thread whose connection was shut down
# `require` does so if it is given authorities.
_VERIFYING = frozenset({"require", "verify-ca", "verify-full"})
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
    credentials: Literal["brokered", "inside"] = "brokered"  # where runs have a gate
    ca: str = ""  # certificates in PEM: the only authorities to trust; empty for the public ones

    def __post_init__(self) -> None:
        for name in ("host", "dbname", "user"):
            text = getattr(self, name)
            if not text or "\0" in text:
                raise ValueError(f"{name}: {text!r} is empty or contains a NUL")
        _within("port", self.port, 1, 65_535)
        _within("connect_timeout_s", self.connect_timeout_s, 1, 60)
        if self.statement_timeout_s is not None:
            _within("statement_timeout_s", self.statement_timeout_s, 0.001, 86_400)
        if self.ca:
            _check_ca(self.ca, self.sslmode)


class Database(Provider["Connection[dict[str, Any]]"]):
    """Opens connections that return rows as dicts."""

    type = "database"
    config = DatabaseConfig
    drivers = ("psycopg", "psycopg.rows")
    secrets: ClassVar = {"password": "of the user"}

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse `mint` without a password: the worker could not log in."""
        if config.mint is not None and "password" not in secrets:
            raise ValueError(
                "secrets.password: missing, and with `mint` the worker logs in as this user"
            )

    def create(self, grant: Grant, tag: str) -> "Connection[dict[str, Any]]":
        """Connect, to the address that the worker named, if it did: the allowed one, or the broker's."""
        import psycopg  # noqa: PLC0415 - only runtimes need the driver
        from psycopg.rows import dict_row  # noqa: PLC0415

        config: DatabaseConfig = build(DatabaseConfig, grant.config, "config")
        with contextlib.ExitStack() as files, _errors_by_name(grant.address, config.host):
            security = files.enter_context(_security(grant, config))
            connection = psycopg.connect(
                host=config.host,
                hostaddr=grant.address or None,
                port=config.port,
                dbname=config.dbname,
                user=config.user,
                connect_timeout=config.connect_timeout_s
                + (_BROKER_SECONDS if grant.brokered else 0),
                application_name=tag,
                options=_options(config),
                autocommit=True,
                row_factory=dict_row,
                **security,
            )
            # Cancelling a statement makes another connection, for which libpq reads the file again.
            weakref.finalize(connection, files.pop_all().close)
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


@contextlib.contextmanager
def root_certificates(sslmode: str, ca: str) -> Iterator[str | None]:
    """Yield the file of the authorities, if the server is verified; libpq would search a home, which runtimes lack.

    Those of a definition are in a file as long as the block: libpq takes no text.
    """
    if ca and sslmode in _VERIFYING:
        with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
            file.write(ca)
            file.flush()
            yield file.name
    else:
        import certifi  # noqa: PLC0415 - only needed to connect

        yield certifi.where() if sslmode.startswith("verify-") else None


@contextlib.contextmanager
def _security(grant: Grant, config: DatabaseConfig) -> Iterator[dict[str, Any]]:
    """Yield the part of the parameters that a broker takes over: it speaks TLS, and has the password."""
    if grant.brokered:
        yield {"sslmode": "disable"}
        return
    with root_certificates(config.sslmode, config.ca) as authorities:
        yield {
            "password": grant.secrets.get("password"),
            "sslmode": config.sslmode,
            "sslrootcert": authorities,
        }


@contextlib.contextmanager
def _errors_by_name(address: str, host: str) -> Iterator[None]:
    """Name the definition's host in errors: in a sandbox the address is one of loopback, which says nothing."""
    import psycopg  # noqa: PLC0415 - only runtimes need the driver

    try:
        yield
    except psycopg.OperationalError as error:
        error.args = (str(error).replace(f'"{address}"', f'"{host}"'),)
        raise


def _hang_up(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as same, contextlib.suppress(OSError):
        same.shutdown(socket.SHUT_RDWR)


def _options(config: DatabaseConfig) -> str | None:
    if config.statement_timeout_s is None:
        return None
    return f"-c statement_timeout={max(1, round(config.statement_timeout_s * 1000))}"


def _check_ca(ca: str, sslmode: str) -> None:
    if fault := fault_in(ca):
        raise ValueError(f"ca: {fault}")
    if sslmode not in _VERIFYING:
        raise ValueError(
            f"ca: with sslmode {sslmode!r} no certificate is checked; set sslmode to 'verify-full', or remove ca"
        )


def _within(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise ValueError(f"{name}: {number!r} is not between {least} and {most}")
