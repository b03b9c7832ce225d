"""Complete requests that wait: callers take turns, and so do the addresses of one caller. Pure."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator

from orchestrator.web.connections import ClientConnection

Line = OrderedDict[ClientConnection, None]


class FairQueue:
    """First come, first served within an address; many requests of one caller delay only its own."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, OrderedDict[str, Line]] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._waiting.total()

    def __iter__(self) -> Iterator[ClientConnection]:
        return (one for lines in self._lines.values() for line in lines.values() for one in line)

    def add(self, connection: ClientConnection) -> None:
        """Add a request behind the others of its caller and address."""
        lines = self._lines.setdefault(connection.caller, OrderedDict())
        lines.setdefault(connection.address, OrderedDict())[connection] = None
        self._waiting[connection.caller] += 1

    def take(self, may: Callable[[str], bool]) -> ClientConnection | None:
        """Return the next request of a caller that may begin; caller and address then go last."""
        caller = next((one for one in self._lines if may(one)), None)
        if caller is None:
            return None
        lines = self._lines[caller]
        address, line = next(iter(lines.items()))
        connection = next(iter(line))
        lines.move_to_end(address)
        self._lines.move_to_end(caller)
        self.discard(connection)
        return connection

    def discard(self, connection: ClientConnection) -> None:
        """Remove a request from the queue, if it is in it."""
        lines = self._lines.get(connection.caller)
        line = lines and lines.get(connection.address)
        if not lines or not line or connection not in line:
            return
        del line[connection]
        self._waiting[connection.caller] -= 1
        if not line:
            del lines[connection.address]
        if not lines:
            del self._lines[connection.caller], self._waiting[connection.caller]

    def last_of_most(self) -> ClientConnection | None:
        """Return the request to refuse: the newest of the caller with most, at its address with most."""
        if not self._waiting:
            return None
        ((caller, _),) = self._waiting.most_common(1)
        longest: Line = max(self._lines[caller].values(), key=len)
        return next(reversed(longest))
