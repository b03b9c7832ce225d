"""The worker's connection to a customer's PostgreSQL.

Timing: while a placement opens, closes or is swept. Model: sync; one connection, closed by who opened it.
Guarantee: at-most-once per statement; nothing waits beyond the deadline, even if the server accepts and never answers.
Names mean what the server itself brings: a run may have left a function or operator of any name where others look.
Failure: IssueError with the server's own sentence; what had not been committed is rolled back by the server.
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
_CONNECT_SECONDS = 2  # libpq knows no less
_POLL_SECONDS = 0.1
_STATEMENT_SECONDS = 3
# A worker that vanishes without a word must not hold its locks for long.
_OPTIONS = (
    "-c search_path=pg_catalog"
    f" -c statement_timeout={_STATEMENT_SECONDS}s"
    f" -c idle_in_transaction_session_timeout={_STATEMENT_SECONDS}s"
)

# Said once more: a pooler may drop the options, and what a run left in another schema would act as an administrator.
_SEARCH_PATH = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)"

RV = TypeVar("RV")


class RemoteConnection(psycopg.Connection[TupleRow]):
    """Gives up on the server at its deadline, by the worker's own clock."""

    deadline: float = 0.0

    def wait(
        self, gen: PQGen[RV], interval: float = _POLL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Wait for the server, never past the deadline."""
        left = max(0.0, self.deadline - time.monotonic())
        return super().wait(gen, interval, left if timeout is None else min(left, timeout))

    def check_time(self) -> None:
        """Raise if there is none left."""
        if time.monotonic() >= self.deadline:
            raise psycopg.errors.OperationalError("it took too long")


@contextmanager
def remote_connection(
    login: Mapping[str, Any], *, dbname: str = "", deadline: float = 0.0
) -> Iterator[RemoteConnection]:
    """Open it in autocommit; whatever psycopg raises inside leaves as IssueError."""
    database = dbname or login["dbname"]
    deadline = deadline or time.monotonic() + REMOTE_SECONDS
    asked = False
    try:
        connection = RemoteConnection.connect(autocommit=True, **_parameters(login, database))
        connection.deadline = deadline
        asked = True
        try:
            connection.execute(_SEARCH_PATH)
            yield connection
        finally:
            connection.close()
    except (psycopg.Error, UnicodeError) as error:
        where = f"database {database} at {login['host']}:{login['port']}"
        # The chain is cut: libpq quotes the statement that it could not read.
        message = f"{where}, as {login['user']}: {cause(error)}"
        raise IssueError(message, nothing_made=not asked) from None


def _parameters(login: Mapping[str, Any], database: str) -> dict[str, Any]:
    return {
        "host": login["host"],
        "hostaddr": login["address"] or None,
        "port": login["port"],
        "dbname": database,
        "user": login["user"],
        "password": login["password"],
        "sslmode": login["sslmode"],
        "sslrootcert": root_certificates(login["sslmode"]),
        "gssencmode": "disable",  # the worker's own tickets are nobody else's business
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": APPLICATION,
        "options": _OPTIONS,
    }


def cause(error: Exception) -> str:
    """One line of what the server said, without the statement and the advice around it."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    line = said or str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]
    return " ".join(line.split()) or type(error).__name__
