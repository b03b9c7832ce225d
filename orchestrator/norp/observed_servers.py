"""Looks from the far side: what the run cache and a customer's PostgreSQL say of connections, users, roles and keys.

Timing: request-time, from the operator's terminal. Model: sync; one connection each, closed by who opened it.
Guarantee: idempotent; nothing is changed there. Failure: bubble, as FarSideAway; no password is in its text.
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


class FarSideAway(Unavailable):
    """A far side cannot be looked at."""

    code = "far_side_away"


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A connection that is there now."""

    id: str
    mark: str  # what it says of itself
    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What is there now of any run."""

    links: tuple[Link, ...]
    issued: tuple[str, ...]  # users or roles


class FarSide(Protocol):
    """Something that runs connect to, as its own administrator sees it."""

    def look(self) -> Look:
        """What is there now; cheap, since it is asked many times a second."""

    def entries(self, execution_id: UUID) -> tuple[str, ...]:
        """What else is named after this run, such as its keys."""


Opening = AbstractContextManager[FarSide]


def names(text: str, execution_id: UUID) -> bool:
    """Whether a name at the far side is this run's."""
    return str(execution_id) in text or execution_id.hex in text


class RunCacheSide:
    """The run cache, by CLIENT LIST, ACL USERS and SCAN."""

    def __init__(self, client: "redis.Redis", place: str) -> None:
        self._client: Any = client  # redis-py types an answer as one that may have to be awaited
        self._place = place

    def look(self) -> Look:
        """Its clients that are runs', and the users of runs."""
        with self._errors():
            clients, users = self._client.client_list(), self._client.acl_users()
        links = [
            Link(id=str(one["id"]), mark=one.get("name", ""), user=one.get("user", ""))
            for one in clients
            if one.get("name", "").startswith("exec_") or one.get("user", "").startswith("exec:")
        ]
        return Look(
            links=tuple(links), issued=tuple(user for user in users if user.startswith("exec:"))
        )

    def entries(self, execution_id: UUID) -> tuple[str, ...]:
        """Its keys."""
        with self._errors():
            return tuple(self._client.scan_iter(match=f"exec:{execution_id}:*", count=_BATCH))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise FarSideAway(f"The run cache at {self._place}: {reason}.") from None


class PostgresSide:
    """A PostgreSQL, by pg_stat_activity and pg_roles."""

    def __init__(self, connection: RemoteConnection, place: str) -> None:
        self._connection = connection
        self._place = place

    def look(self) -> Look:
        """Its sessions that are runs', and the roles of runs."""
        links, roles = self._rows(SESSIONS), self._rows(ROLES)
        return Look(
            links=tuple(Link(id=pid, mark=mark, user=user or "") for pid, mark, user in links),
            issued=tuple(name for (name,) in roles),
        )

    def entries(self, _execution_id: UUID) -> tuple[str, ...]:
        """Nothing: what a run writes into its customer's tables is the customer's."""
        return ()

    def _rows(self, statement: str) -> list[Any]:
        self._connection.deadline = time.monotonic() + REMOTE_SECONDS
        try:
            return self._connection.execute(statement.encode()).fetchall()
        except psycopg.Error as error:
            raise FarSideAway(f"{self._place}: {cause(error)}.") from None


@contextmanager
def run_cache_side(url: str) -> Iterator[FarSide]:
    """The run cache as its administrator sees it."""
    place = urlsplit(url).netloc.rpartition("@")[2]
    client = redis.Redis.from_url(
        url,
        client_name="isolane-norp",
        decode_responses=True,
        socket_connect_timeout=REMOTE_SECONDS,
        socket_timeout=REMOTE_SECONDS,
    )
    with contextlib.closing(client):
        yield RunCacheSide(client, place)


@contextmanager
def postgres_side(login: Mapping[str, Any]) -> Iterator[FarSide]:
    """A PostgreSQL as this login sees it, which is the definition's own."""
    place = f"database {login['dbname']} at {login['host']}:{login['port']}"
    try:
        with remote_connection(login) as connection:
            yield PostgresSide(connection, place)
    except IssueError as error:
        raise FarSideAway(f"The far side cannot be looked at: {error}") from None
