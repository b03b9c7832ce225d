"""The worker's connection to a customer's PostgreSQL.

Only pg_catalog is searched: a run may have left a function or operator of any name in another schema.

Timing: while a placement opens, closes or is swept.
Model: sync; one connection, closed by its opener.
Guarantee: at-most-once per statement; nothing waits beyond the deadline, even if the server is silent.
Failure: IssueError with the server's own message; the server rolls back what was not committed.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

from isolane.providers.database import root_certificates
from resources.issuers.base import REMOTE_SECONDS, IssueError

APPLICATION = "isolane-worker"
_CONNECT_SECONDS = 2  # the least that libpq allows
_POLL_SECONDS = 0.1
_STATEMENT_SECONDS = 3
# A worker that vanishes must not hold its locks for long.
_OPTIONS = (
    "-c search_path=pg_catalog"
    f" -c statement_timeout={_STATEMENT_SECONDS}s"
    f" -c idle_in_transaction_session_timeout={_STATEMENT_SECONDS}s"
)

# Set once more: a pooler may drop the options, and code that a run left in another schema would run as administrator.
_SEARCH_PATH = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)"

RV = TypeVar("RV")


class RemoteConnection(psycopg.Connection[TupleRow]):
    """A connection that gives up at its deadline, by the worker's own clock."""

    deadline: float = 0.0

    def wait(
        self, gen: PQGen[RV], interval: float = _POLL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Wait for the server, never past the deadline."""
        left = max(0.0, self.deadline - time.monotonic())
        return super().wait(gen, interval, left if timeout is None else min(left, timeout))

    def check_time(self) -> None:
        """Raise if the deadline has passed."""
        if time.monotonic() >= self.deadline:
            raise psycopg.errors.OperationalError("it took too long")


@contextmanager
def remote_connection(
    login: Mapping[str, Any], *, dbname: str = "", deadline: float = 0.0
) -> Iterator[RemoteConnection]:
    """Connect in autocommit mode; errors of psycopg are raised as IssueError."""
    database = dbname or login["dbname"]
    deadline = deadline or time.monotonic() + REMOTE_SECONDS
    connected = False
    try:
        with root_certificates(login["sslmode"], login.get("ca", "")) as authorities:
            parameters = _parameters(login, database, authorities)
            connection = RemoteConnection.connect(autocommit=True, **parameters)
        connection.deadline = deadline
        connected = True
        try:
            connection.execute(_SEARCH_PATH)
            yield connection
        finally:
            connection.close()
    except (psycopg.Error, UnicodeError) as error:
        where = f"database {database} at {login['host']}:{login['port']}"
        # Without its cause: libpq quotes the statement that it could not parse.
        message = f"{where}, as {login['user']}: {cause(error)}"
        raise IssueError(message, nothing_made=not connected) from None


def _parameters(login: Mapping[str, Any], database: str, authorities: str | None) -> dict[str, Any]:
    return {
        "host": login["host"],
        "hostaddr": login["address"] or None,
        "port": login["port"],
        "dbname": database,
        "user": login["user"],
        "password": login["password"],
        "sslmode": login["sslmode"],
        "sslrootcert": authorities,
        "gssencmode": "disable",  # never the worker's own Kerberos tickets
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": APPLICATION,
        "options": _OPTIONS,
    }


def cause(error: Exception) -> str:
    """Return the server's message in one line, without the statement and the hints around it."""
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    line = message or str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]
    return " ".join(line.split()) or type(error).__name__
