"""The open connections of a process by phase, and the choice of the ones to drop. Pure."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import Protocol

from foundation.errors import IsolaneError


class Phase(Enum):
    """The phase of a connection."""

    CLOSING = auto()  # refused; further bytes are discarded, so that the answer can be read
    HEADER = auto()  # new, or a part of a request's header has come
    BODY = auto()  # a part of the body has come
    IDLE = auto()  # between two requests
    UNREAD = auto()  # answered, but the caller has not read it all
    QUEUED = auto()  # a complete request waits for its turn
    AT_WORK = auto()
    STREAM = auto()  # an answer without an end


UNFINISHED = (Phase.HEADER, Phase.BODY)


class Peer(Protocol):
    """The connection's I/O."""

    def drop(self) -> None:
        """Close at once, without an answer."""

    def refuse(self, error: IsolaneError) -> None:
        """Answer with a problem and close."""

    def begin(self) -> None:
        """Hand the whole request to the application."""

    def unread_bytes(self) -> int:
        """Return the bytes of the answer that the caller has not read."""


@dataclass(eq=False, kw_only=True, slots=True)
class ClientConnection:
    """The facts about one connection that decisions need; times are of the monotonic clock."""

    peer: Peer
    address: str
    caller: str = ""  # of the complete request; callers take turns
    phase: Phase = Phase.HEADER
    since: float = 0  # when the phase began
    held: int = 0  # bytes received of a request that has not begun
    body: int = 0  # bytes of the body so far
    unread: int = 0
    progress: float = 0  # when `unread` was last seen to change


class Connections:
    """All connections; in each phase the longest-standing come first."""

    def __init__(self) -> None:
        self._by_phase: dict[Phase, OrderedDict[ClientConnection, None]] = {
            phase: OrderedDict() for phase in Phase
        }
        self._by_address: Counter[str] = Counter()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[ClientConnection]:
        return (one for connections in self._by_phase.values() for one in connections)

    def __contains__(self, connection: ClientConnection) -> bool:
        return connection in self._by_phase[connection.phase]

    def add(self, connection: ClientConnection, now: float) -> None:
        """Add a new connection."""
        self._number += 1
        self._by_address[connection.address] += 1
        self._enter(connection, Phase.HEADER, now)

    def move(self, connection: ClientConnection, phase: Phase, now: float) -> None:
        """Change the phase of a connection; ignore one that was removed."""
        if connection in self:
            del self._by_phase[connection.phase][connection]
            self._enter(connection, phase, now)

    def remove(self, connection: ClientConnection) -> None:
        """Remove a connection; a second time does nothing."""
        if connection in self:
            del self._by_phase[connection.phase][connection]
            self._number -= 1
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def of(self, address: str) -> int:
        """Return the number of connections of an address."""
        return self._by_address[address]

    def within(self, phase: Phase) -> Iterator[ClientConnection]:
        """Return the connections in a phase, the longest-standing first."""
        return iter(self._by_phase[phase])

    def expendable(self) -> ClientConnection | None:
        """Return the connection to drop for a new one; None if all have a complete request or a stream.

        Of unfinished ones the oldest of the larger group: many that send nothing do not displace those sending a body.
        """
        larger = max(UNFINISHED, key=lambda phase: len(self._by_phase[phase]))
        order = (Phase.CLOSING, larger, *UNFINISHED, Phase.IDLE, Phase.UNREAD)
        return next((one for phase in order for one in self._by_phase[phase]), None)

    def greatest(self) -> ClientConnection | None:
        """Return the unfinished connection that holds most bytes."""
        unfinished = chain.from_iterable(self._by_phase[phase] for phase in UNFINISHED)
        return max(unfinished, key=lambda one: one.held, default=None)

    def _enter(self, connection: ClientConnection, phase: Phase, now: float) -> None:
        connection.phase, connection.since, connection.progress = phase, now, now
        self._by_phase[phase][connection] = None
