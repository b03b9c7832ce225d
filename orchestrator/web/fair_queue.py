"""Whole requests that wait: callers take turns, so the many of one wait for each other. Pure."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from orchestrator.web.connections import Connection


class FairQueue:
    """First come, first served within a caller; one of each caller in turn."""

    def __init__(self) -> None:
        self._by_caller: OrderedDict[str, OrderedDict[Connection, None]] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Connection]:
        return (one for waiting in self._by_caller.values() for one in waiting)

    def add(self, connection: Connection) -> None:
        """Behind the others of its caller."""
        self._by_caller.setdefault(connection.caller, OrderedDict())[connection] = None
        self._number += 1

    def take(self, may: Callable[[str], bool]) -> Connection | None:
        """The next of a caller who may; that caller is then the last in turn."""
        caller = next((one for one in self._by_caller if may(one)), None)
        if caller is None:
            return None
        connection = next(iter(self._by_caller[caller]))
        self.discard(connection)
        if caller in self._by_caller:
            self._by_caller.move_to_end(caller)
        return connection

    def discard(self, connection: Connection) -> None:
        """Out of the queue, if it is in it."""
        waiting = self._by_caller.get(connection.caller)
        if waiting and connection in waiting:
            del waiting[connection]
            self._number -= 1
            if not waiting:
                del self._by_caller[connection.caller]

    def last_of_most(self) -> Connection | None:
        """The youngest of the caller who has most: whom to refuse when there are too many."""
        if not self._by_caller:
            return None
        greatest: OrderedDict[Connection, None] = max(self._by_caller.values(), key=len)
        return next(reversed(greatest))
