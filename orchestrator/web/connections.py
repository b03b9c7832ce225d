"""The open connections of a process, by what each is doing, and which of them can be dropped. Pure."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import Protocol

from foundation.errors import IsolaneError


class Phase(Enum):
    """What a connection is doing."""

    CLOSING = auto()  # refused; what still comes is thrown away, so that the answer can be read
    HEADER = auto()  # new, or the header of a request has come in part
    BODY = auto()  # the body has come in part
    IDLE = auto()  # between two requests
    UNREAD = auto()  # answered, but the answer is not taken
    QUEUED = auto()  # a whole request waits for its turn
    AT_WORK = auto()
    STREAM = auto()  # an answer that has no end


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
        """How much of the answer is not taken yet."""


@dataclass(eq=False, kw_only=True, slots=True)
class ClientConnection:
    """What decisions need to know of one connection; times are of the monotonic clock."""

    peer: Peer
    address: str
    caller: str = ""  # of the request that is whole: who takes turns with others
    phase: Phase = Phase.HEADER
    since: float = 0  # when the phase began
    held: int = 0  # bytes received of a request that is not at work yet
    body: int = 0  # bytes of the body so far
    unread: int = 0
    progress: float = 0  # when `unread` was last seen to change


class Connections:
    """All of them; in each phase those come first that have been in it the longest."""

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
        """A new one, of which nothing has come yet."""
        self._number += 1
        self._by_address[connection.address] += 1
        self._enter(connection, Phase.HEADER, now)

    def move(self, connection: ClientConnection, phase: Phase, now: float) -> None:
        """It does something else from now on; one that has left stays away."""
        if connection in self:
            del self._by_phase[connection.phase][connection]
            self._enter(connection, phase, now)

    def remove(self, connection: ClientConnection) -> None:
        """It is gone; a second time says nothing new."""
        if connection in self:
            del self._by_phase[connection.phase][connection]
            self._number -= 1
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def of(self, address: str) -> int:
        """How many this address has."""
        return self._by_address[address]

    def within(self, phase: Phase) -> Iterator[ClientConnection]:
        """Those of a phase, the longest in it first."""
        return iter(self._by_phase[phase])

    def expendable(self) -> ClientConnection | None:
        """Whom to drop for a new connection; nobody if all have a whole request or a stream.

        Of unfinished ones the oldest of the larger group: many that send nothing do not end those who send a body.
        """
        larger = max(UNFINISHED, key=lambda phase: len(self._by_phase[phase]))
        order = (Phase.CLOSING, larger, *UNFINISHED, Phase.IDLE, Phase.UNREAD)
        return next((one for phase in order for one in self._by_phase[phase]), None)

    def greatest(self) -> ClientConnection | None:
        """The unfinished one that holds most."""
        unfinished = chain.from_iterable(self._by_phase[phase] for phase in UNFINISHED)
        return max(unfinished, key=lambda one: one.held, default=None)

    def _enter(self, connection: ClientConnection, phase: Phase, now: float) -> None:
        connection.phase, connection.since, connection.progress = phase, now, now
        self._by_phase[phase][connection] = None
