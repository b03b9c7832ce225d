"""Sharing between all connections of a process: admission, turns, drops and deadlines.

Timing: request-time, in the server's event loop.
Model: sync; nothing here waits.
Guarantee: deterministic for a clock; a complete request is answered or refused with 503, if its caller reads.
Failure: errors bubble to the event loop, which logs them and closes the connection.
"""

import logging
from collections import Counter
from collections.abc import Callable

from orchestrator.web import refusals
from orchestrator.web.connections import ClientConnection, Connections, Phase
from orchestrator.web.deadlines import overdue
from orchestrator.web.fair_queue import FairQueue
from orchestrator.web.limits import WebLimits

logger = logging.getLogger(__name__)
ANSWERED = (Phase.AT_WORK, Phase.STREAM, Phase.UNREAD)


class Traffic:
    """All connections of one web process."""

    def __init__(self, limits: WebLimits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.clock = clock
        self.connections = Connections()
        self.queue = FairQueue()
        self.at_work = 0
        self._at_work_of: Counter[str] = Counter()
        self.streams = 0
        self.held = 0
        self.buffer = memoryview(bytearray(limits.read_bytes))

    # --- connections come and go
    def opened(self, connection: ClientConnection) -> None:
        """Admit a connection, if need be in place of another."""
        most = self.limits.connections_per_address
        if most and self.connections.of(connection.address) >= most:
            self._warn("ADDRESS_FULL", "an address is at its limit: a new connection was dropped")
            self._drop(connection)
            return
        if len(self.connections) >= self.limits.connections:
            other = self.connections.expendable()
            self._warn(
                "CONNECTIONS_FULL",
                "all connections are in use: one without a complete request was dropped",
            )
            self._drop(other or connection)
            if other is None:
                return
        self.connections.add(connection, self.clock())

    def closed(self, connection: ClientConnection) -> None:
        """Remove a connection and release what it held."""
        self.queue.discard(connection)
        self._release(connection)
        self.connections.remove(connection)

    # --- a request comes
    def began(self, connection: ClientConnection) -> None:
        """Note the first bytes of a request."""
        connection.body = 0
        self._move(connection, Phase.HEADER)

    def received(self, connection: ClientConnection, size: int) -> None:
        """Count kept bytes; beyond the limit refuse the largest unfinished request, then waiting ones."""
        connection.held += size
        self.held += size
        share = self.limits.held_bytes // self.limits.connections
        while self.held > self.limits.held_bytes:
            greatest = self.connections.greatest()
            if greatest is None or greatest.held < share:
                greatest = self.queue.last_of_most() or connection
            self._refuse_overloaded(greatest)

    def header_complete(self, connection: ClientConnection) -> None:
        """Note a complete header; the body follows."""
        self._move(connection, Phase.BODY)

    def refused(self, connection: ClientConnection) -> None:
        """Note that a connection was answered with a problem and is about to close."""
        self.queue.discard(connection)
        self._release(connection)
        self._move(connection, Phase.CLOSING)

    # --- a request is complete
    def whole(self, connection: ClientConnection) -> None:
        """Begin a complete request, or queue it."""
        if self.at_work < self.limits.at_work and self._may_begin(connection.caller):
            self._begin(connection)
            return
        self._move(connection, Phase.QUEUED)
        self.queue.add(connection)
        if len(self.queue) > self.limits.queued and (last := self.queue.last_of_most()):
            self._refuse_overloaded(last)

    def became_stream(self, connection: ClientConnection, caller: str) -> bool:
        """Count an answer as a stream instead of a request at work; return False if there is no room."""
        if self.streams >= self.limits.streams:
            return False
        self.streams += 1
        self._move(connection, Phase.STREAM)
        self._end_work(caller)
        return True

    def answered(self, connection: ClientConnection, *, unread: bool) -> None:
        """Note that the application has ended its answer."""
        self._move(connection, Phase.UNREAD if unread else Phase.IDLE)

    def ended(self, caller: str, *, stream: bool) -> None:
        """Note that the application has returned and its thread is free."""
        if stream:
            self.streams -= 1
        else:
            self._end_work(caller)

    # --- time goes by
    def sweep(self) -> None:
        """End connections that are overdue, and those that keep too many unread bytes."""
        now = self.clock()
        ended: Counter[str] = Counter()
        for connection in list(self.connections):
            self._look(connection, now)
            if overdue(connection, now, self.limits):
                if connection.phase not in {Phase.IDLE, Phase.CLOSING}:
                    ended[connection.phase.name.lower()] += 1
                self._expire(connection)
        self._drop_unread(ended)
        if ended:
            summary = ", ".join(f"{number} {phase}" for phase, number in sorted(ended.items()))
            logger.info(
                "connections were overdue: %s", summary, extra={"event": "CONNECTIONS_ENDED"}
            )

    def _look(self, connection: ClientConnection, now: float) -> None:
        if connection.phase in ANSWERED:
            unread = connection.peer.unread_bytes()
            if unread != connection.unread:
                connection.unread, connection.progress = unread, now

    def _expire(self, connection: ClientConnection) -> None:
        match connection.phase:
            case Phase.HEADER | Phase.BODY if connection.held:
                connection.peer.refuse(refusals.timed_out(self.limits))
            case Phase.QUEUED:
                connection.peer.refuse(refusals.overloaded())
            case _:
                self._drop(connection)

    def _drop_unread(self, ended: Counter[str]) -> None:
        waiting = list(self.connections.within(Phase.UNREAD))
        total = sum(connection.unread for connection in waiting)
        for connection in waiting:
            if total <= self.limits.unread_bytes:
                return
            total -= connection.unread
            ended["unread"] += 1
            self._drop(connection)

    # --- inside
    def _begin(self, connection: ClientConnection) -> None:
        self._release(connection)
        self._move(connection, Phase.AT_WORK)
        self.at_work += 1
        self._at_work_of[connection.caller] += 1
        connection.peer.begin()

    def _may_begin(self, caller: str) -> bool:
        return self._at_work_of[caller] < self.limits.at_work_per_caller

    def _end_work(self, caller: str) -> None:
        self.at_work -= 1
        self._at_work_of[caller] -= 1
        if not self._at_work_of[caller]:
            del self._at_work_of[caller]
        while self.at_work < self.limits.at_work:
            following = self.queue.take(self._may_begin)
            if following is None:
                return
            self._begin(following)

    def _refuse_overloaded(self, connection: ClientConnection) -> None:
        message = "requests wait or hold memory beyond the limit: one of %s was refused"
        logger.warning(message, connection.caller or "strangers", extra={"event": "REQUESTS_FULL"})
        connection.peer.refuse(refusals.overloaded())

    def _drop(self, connection: ClientConnection) -> None:
        self.closed(connection)
        connection.phase = Phase.CLOSING
        connection.peer.drop()

    def _release(self, connection: ClientConnection) -> None:
        self.held -= connection.held
        connection.held = 0

    def _move(self, connection: ClientConnection, phase: Phase) -> None:
        self.connections.move(connection, phase, self.clock())

    def _warn(self, event: str, message: str) -> None:
        logger.warning(message, extra={"event": event})
