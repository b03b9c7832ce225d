"""Limits of one caller, one connection and all of them together. Pure."""

from dataclasses import dataclass
from typing import Self

MAX_CONNECTIONS = 4_096
# In one turn of the event loop: many new connections must not delay waiting answers.
MAX_ACCEPTED = 32
# Turns of the event loop until an accepted connection counts, or a dropped one is closed.
TURNS = 4
MAX_QUEUED = 500
AT_WORK = 20
# For the database's connections, log, listening sockets, temporary files and libraries.
OWN_DESCRIPTORS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class WebLimits:
    """Seconds, bytes and numbers; anything beyond is refused or closed."""

    # --- all connections together
    connections: int
    accepted: int  # new ones in one turn of the event loop
    queued: int  # complete requests that wait for their turn
    streams: int
    at_work: int = AT_WORK  # each has a thread and mostly a database connection
    at_work_per_caller: int = AT_WORK // 5  # a few keep Python busy
    held_bytes: int = 64 * 1024 * 1024  # requests that have not begun
    unread_bytes: int = 64 * 1024 * 1024  # answers that callers have not read
    # --- one connection in one turn of the event loop: a fast sender must not keep the others waiting
    read_bytes: int = 16 * 1024
    # --- one address; 0: no limit
    connections_per_address: int = 0
    # --- one request
    url_bytes: int = 8_192
    headers: int = 100
    header_bytes: int = 65_536
    body_bytes: int = 2_621_440
    chunks: int = 10_000
    header_seconds: float = 10
    body_seconds: float = 30
    # After the first seconds a body comes at least this fast.
    body_first_seconds: float = 5
    body_bytes_per_second: int = 1_024
    queue_seconds: float = 30
    # --- one answer
    answer_bytes: int = 4 * 1024 * 1024  # buffered for a caller; beyond it the application waits
    stalled_seconds: float = 10  # without a byte being read
    answer_seconds: float = 120  # from its end at the server until the last byte is read
    # --- between requests, and after a refusal
    idle_seconds: float = 5
    closing_seconds: float = 2
    closing_bytes: int = 4 * 1024 * 1024

    @property
    def request_bytes(self) -> int:
        """The bytes of one request in all; chunk headers count because they are read, too."""
        return self.header_bytes + 2 * self.body_bytes

    @classmethod
    def for_descriptors(cls, descriptors: int, **given: float) -> Self:
        """Return limits with as many connections as fit beside those that come and go."""
        accepted = min(MAX_ACCEPTED, descriptors // 4 // TURNS)
        room = descriptors - TURNS * accepted - min(OWN_DESCRIPTORS, descriptors // 4)
        connections = min(MAX_CONNECTIONS, room)
        derived = {
            "connections": connections,
            "accepted": accepted,
            # Together less than all, so that there is always a connection that can be dropped.
            "queued": min(MAX_QUEUED, connections // 2),
            "streams": connections // 4,
        }
        return cls(**{**derived, **given})  # type: ignore[arg-type]  # checked by the names


def requests_at_work(pool_size: int) -> int:
    """Return as many as the pool has connections: requests wait for a turn, not for a connection."""
    return pool_size or AT_WORK
