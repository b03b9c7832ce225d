"""Remote servers as their administrator sees them: connections, users, roles and keys of runs.

Timing: request-time, from the operator's terminal.
Model: sync; one connection each, closed by its opener.
Guarantee: idempotent; nothing is changed on the server.
Failure: bubble, as RemoteServerAway; its text holds no password.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import redis

from foundation.errors import Unavailable
from resources.issuers.base import REMOTE_SECONDS, IssueError
from resources.issuers.remote_postgres import RemoteConnection, cause, remote_connection

SESSIONS = """
SELECT pid::text, application_name, usename FROM pg_stat_activity
 WHERE starts_with(application_name, 'exec_') OR starts_with(usename, 'iso_')"""
ROLES = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, 'iso_')"
_BATCH = 1000


class RemoteServerAway(Unavailable):
    """A remote server cannot be observed."""

    code = "remote_server_away"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenConnection:
    """A connection that is open now."""

    id: str
    tag: str  # that the client has set
    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSnapshot:
    """The connections and credentials of all runs that a server has now."""

    connections: tuple[OpenConnection, ...]
    credentials: tuple[str, ...]  # names of users or roles


class ObservedServer(Protocol):
    """A server that runs connect to, as its own administrator sees it."""

    def snapshot(self) -> ServerSnapshot:
        """Return what the server has now; cheap, since it is asked many times a second."""

    def keys_of(self, execution_id: UUID) -> tuple[str, ...]:
        """Return what else is named after this run, such as its cache keys."""


ServerContext = AbstractContextManager[ObservedServer]


def is_named_after(text: str, execution_id: UUID) -> bool:
    """Say whether a name on the server is this run's."""
    return str(execution_id) in text or execution_id.hex in text


class ObservedRunCache:
    """The run cache, by CLIENT LIST, ACL USERS and SCAN."""

    def __init__(self, client: "redis.Redis", address: str) -> None:
        self._client: Any = client  # redis-py types an answer as one that may have to be awaited
        self._address = address

    def snapshot(self) -> ServerSnapshot:
        """Return the clients and users of runs."""
        with self._errors():
            clients, users = self._client.client_list(), self._client.acl_users()
        connections = [
            OpenConnection(id=str(one["id"]), tag=one.get("name", ""), user=one.get("user", ""))
            for one in clients
            if one.get("name", "").startswith("exec_") or one.get("user", "").startswith("exec:")
        ]
        return ServerSnapshot(
            connections=tuple(connections),
            credentials=tuple(user for user in users if user.startswith("exec:")),
        )

    def keys_of(self, execution_id: UUID) -> tuple[str, ...]:
        """Return the keys of this run."""
        with self._errors():
            return tuple(self._client.scan_iter(match=f"exec:{execution_id}:*", count=_BATCH))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise RemoteServerAway(f"The run cache at {self._address}: {reason}.") from None


class ObservedPostgres:
    """A PostgreSQL server, by pg_stat_activity and pg_roles."""

    def __init__(self, connection: RemoteConnection, address: str) -> None:
        self._connection = connection
        self._address = address

    def snapshot(self) -> ServerSnapshot:
        """Return the sessions and roles of runs."""
        sessions, roles = self._rows(SESSIONS), self._rows(ROLES)
        return ServerSnapshot(
            connections=tuple(
                OpenConnection(id=pid, tag=tag, user=user or "") for pid, tag, user in sessions
            ),
            credentials=tuple(name for (name,) in roles),
        )

    def keys_of(self, _execution_id: UUID) -> tuple[str, ...]:
        """Return nothing: rows that a run writes into its customer's tables are the customer's."""
        return ()

    def _rows(self, statement: str) -> list[Any]:
        self._connection.deadline = time.monotonic() + REMOTE_SECONDS
        try:
            return self._connection.execute(statement.encode()).fetchall()
        except psycopg.Error as error:
            raise RemoteServerAway(f"{self._address}: {cause(error)}.") from None


@contextmanager
def observed_run_cache(url: str) -> Iterator[ObservedServer]:
    """Connect to the run cache as its administrator."""
    address = urlsplit(url).netloc.rpartition("@")[2]
    client = redis.Redis.from_url(
        url,
        client_name="isolane-norp",
        decode_responses=True,
        socket_connect_timeout=REMOTE_SECONDS,
        socket_timeout=REMOTE_SECONDS,
    )
    with contextlib.closing(client):
        yield ObservedRunCache(client, address)


@contextmanager
def observed_postgres(login: Mapping[str, Any]) -> Iterator[ObservedServer]:
    """Connect to a PostgreSQL server with this login, which is the definition's own."""
    address = f"database {login['dbname']} at {login['host']}:{login['port']}"
    try:
        with remote_connection(login) as connection:
            yield ObservedPostgres(connection, address)
    except IssueError as error:
        raise RemoteServerAway(f"The remote server cannot be observed: {error}") from None
