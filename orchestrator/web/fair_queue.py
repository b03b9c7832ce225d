"""Whole requests that wait for their turn: addresses take turns, so a crowd from one waits for itself. Pure."""

from collections import OrderedDict
from collections.abc import Iterator

from orchestrator.web.connections import Connection


class FairQueue:
    """First come, first served within an address; one of each address in turn."""

    def __init__(self) -> None:
        self._by_address: OrderedDict[str, OrderedDict[Connection, None]] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Connection]:
        return (one for waiting in self._by_address.values() for one in waiting)

    def add(self, connection: Connection) -> None:
        """Behind the others of its address."""
        self._by_address.setdefault(connection.address, OrderedDict())[connection] = None
        self._number += 1

    def take(self) -> Connection | None:
        """The next; its address is then the last in turn."""
        if not self._by_address:
            return None
        address, waiting = next(iter(self._by_address.items()))
        connection = next(iter(waiting))
        self.discard(connection)
        if address in self._by_address:
            self._by_address.move_to_end(address)
        return connection

    def discard(self, connection: Connection) -> None:
        """Out of the queue, if it is in it."""
        waiting = self._by_address.get(connection.address)
        if waiting and connection in waiting:
            del waiting[connection]
            self._number -= 1
            if not waiting:
                del self._by_address[connection.address]

    def last_of_most(self) -> Connection | None:
        """The youngest of the address that has most: whom to refuse when there are too many."""
        if not self._by_address:
            return None
        greatest: OrderedDict[Connection, None] = max(self._by_address.values(), key=len)
        return next(reversed(greatest))
