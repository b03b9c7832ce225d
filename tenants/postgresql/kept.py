"""The connections that a worker's threads share: each keeps to some tenants, so that their plans are made once.

A backend remembers the tables of every tenant it has seen, and the plans of their statements. If each thread had a
connection of its own, each would remember all tenants.

Timing: background-worker.
Model: sync; a connection is used by one thread at a time.
Guarantee: nobody waits: who finds all connections taken opens one for the moment.
Failure: a connection in a transaction, or dead, is closed when it is put back; none is handed on.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.pq import TransactionStatus

from tenants.postgresql.database_scope import DatabaseScope
from tenants.postgresql.plans import PreparedPlans

# What a backend remembers of a tenant's tables, about 200 kB, it never forgets: so it is replaced after so many.
TENANTS_MAX = 300


@dataclass(eq=False, kw_only=True, slots=True)
class KeptConnection:
    """A place for a connection, with what the connection knows."""

    lasting: bool = False  # else the connection is closed when it is put back
    taken: bool = False
    at_home: bool = False  # taken for a tenant whose own place it is
    connection: Connection[Any] | None = None
    asserted: DatabaseScope | None = None
    tenants: set[str] = field(default_factory=set)  # the search_paths entered so far
    plans: PreparedPlans = field(default_factory=PreparedPlans)

    def prepares(self, text: bytes) -> bool:
        """Say whether a statement is to be prepared on this connection."""
        return self.plans.admit(text, at_home=self.at_home)

    @property
    def is_used_up(self) -> bool:
        """True if the backend remembers too many tenants."""
        return len(self.tenants) > TENANTS_MAX

    def empty(self) -> None:
        """Close the connection, if there is one, and forget what it knew."""
        if self.connection is not None:
            self.connection.close()
        self.connection, self.asserted = None, None
        self.tenants, self.plans = set(), PreparedPlans()


class KeptConnections:
    """All places of this process."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._places = [KeptConnection(lasting=True) for _ in range(size)]

    def take(self, search_path: str) -> KeptConnection:
        """Take the place of this tenant if it is free, else the next one; if none is, one that does not last."""
        home = hash(search_path) % len(self._places)
        with self._lock:
            for place in self._places[home:] + self._places[:home]:
                if not place.taken:
                    place.taken, place.at_home = True, place is self._places[home]
                    return place
        return KeptConnection()

    def put_back(self, place: KeptConnection) -> None:
        """Let others have this place, with its connection if that is fit to be used again."""
        if not (place.lasting and _is_fit(place)):
            place.empty()
        with self._lock:
            place.taken = False

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            for place in self._places:
                if not place.taken:
                    place.empty()


def _is_fit(place: KeptConnection) -> bool:
    return (
        place.connection is not None
        and not place.connection.closed
        and place.connection.info.transaction_status == TransactionStatus.IDLE
        and not place.is_used_up
    )
