"""The gate of one run: the worker's end of its gate channel, and all its connections.

What comes over the channel is not trusted. Every connection and every refusal is recorded.

Timing: any thread may call its methods; they wait only where they say so.
Model: all else happens in the gate loop (resources.gate.loop).
Guarantee: nothing but the routes of the plan is reached, within the run's limits.
Failure: a runtime that breaks the protocol of the channel is ended; `fault` says how it did.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from django.utils import timezone

from isolane.channel import Channel
from isolane.gate.connection import GateConnection
from isolane.gate.frames import FROM_FORWARDER, FrameKind, GateFrame
from isolane.gate.multiplexer import Multiplexer
from isolane.limits import RunLimits
from isolane.protocol import ProtocolError
from isolane.text import storable
from resources.gate.brokers.share import Share
from resources.gate.connection_log import MAX_REFUSALS
from resources.gate.dialing import dial
from resources.gate.loop import gate_loop
from resources.gate.open_connections import OpenConnections
from resources.gate.plan import GatePlan, Route
from resources.gate.record import REFUSALS, ConnectionEnded, ConnectionReason, ConnectionRecord
from resources.gate.tunnel import tunnel

OnConnection = Callable[[ConnectionRecord], None]  # called in the gate's thread; does not wait
_CLOSE_SECONDS = 2.0  # for connections that the run has ended in order to hand on their last bytes
_LEAVE_SECONDS = 0.5  # for the others, once they are cancelled
_AGAIN_SECONDS = 3.0  # until a connection that is stopped, and goes on, is cancelled again
_FINISH_SECONDS = 5.0  # for a run to read what a broker has said at the end
_URGENT_MOST = 1024  # frames for a runtime that does not read
_UNFINISHED_MOST = 4096  # connections; a forwarder has no more sockets, and answers a reset at once
_REFUSED_MOST = 1000  # names that are recorded; more are not
_UNDER_WAY = 256 * 1024  # bytes in the channel of a run with routes, in each direction
_MB = 1024 * 1024
_NAME_CHARACTERS = 255
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Dialled:
    """A connection that is being served."""

    route: Route
    connection: GateConnection
    began: float = field(default_factory=time.monotonic)
    reason: ConnectionReason | None = None  # if the gate itself ends it
    task: "asyncio.Task[None] | None" = None
    has_begun: bool = False  # a task that is cancelled before does nothing at all
    is_open: bool = False  # within the run's limit
    has_carried: bool = False  # so that it is no refusal, whatever its end
    stopped_at: float = -math.inf


class Gate:
    """The gate of one run."""

    def __init__(
        self,
        plan: GatePlan,
        *,
        limits: RunLimits,
        on_connection: OnConnection,
        ids: Mapping[str, object],
        share: Share,
    ) -> None:
        """`ids`: of the run, for log lines."""
        self.fault = ""  # in words, of a runtime that broke the protocol
        self._ids = ids
        self._plan = plan
        self._limits = limits
        self._on_connection = on_connection
        self._on_fault: Callable[[], object] = lambda: None
        self._is_over: Callable[[], bool] = lambda: False
        self._is_open = threading.Event()  # or over
        self._is_flushed = threading.Event()  # likewise
        self._multiplexer: Multiplexer | None = None
        self._dialled: dict[int, _Dialled] = {}
        self._open = OpenConnections(limits.connections)
        self._last_number = 0
        self._refused = 0
        self._logged = 0
        self._bytes_left = math.inf if limits.network_mb is None else limits.network_mb * _MB
        self._share = share  # kept: its tenant's part lives as long as a run of the tenant has it

    @property
    def has_routes(self) -> bool:
        """Say whether anything can be reached."""
        return bool(self._plan.routes)

    def start(
        self, channel: Channel, *, on_fault: Callable[[], object], is_over: Callable[[], bool]
    ) -> None:
        """Serve this channel; `on_fault` is called, in a thread, if the runtime must be ended.

        `is_over`: whether its keepalive has run out, after which nothing that it has sent goes on.
        """
        self._on_fault, self._is_over = on_fault, is_over
        gate_loop().call(partial(self._begin, channel))

    def wait_until_open(self, timeout: float) -> bool:
        """Wait until a sandbox listens at its routes, or has ended; false if it takes longer."""
        return self._is_open.wait(timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until all that the runtime has sent is here, or it has ended; false if it takes longer."""
        if not self.has_routes:
            return True
        gate_loop().call(self._ask_to_flush)
        return self._is_flushed.wait(timeout)

    def close(self) -> None:
        """End the connections of a runtime that is gone; wait, for a moment, until they are recorded. Repeatable."""
        closing = gate_loop().submit(self._close())
        try:
            closing.result(_CLOSE_SECONDS + 1.0)
        except TimeoutError:
            logger.error("a gate was not closed in time", extra=self._extra("GATE_STAYS"))  # noqa: TRY400 - no trace wanted

    def _extra(self, event: str) -> dict[str, object]:
        return {"event": event, **self._ids}

    # --- in the loop
    def sweep(self) -> None:
        """End the connections that were idle for too long, or all if the run's time is over."""
        if self._is_over():
            self._end_all()
        if (most := self._limits.idle_seconds) is None:
            return
        oldest = time.monotonic() - most
        for dialled in list(self._dialled.values()):
            if dialled.is_open and dialled.connection.active_at < oldest:
                _stop(dialled, ConnectionReason.IDLE)

    def _begin(self, channel: Channel) -> None:
        if self.has_routes:
            channel.widen(_UNDER_WAY)
        gate_loop().gates.add(self)
        self._multiplexer = Multiplexer(
            channel,
            accepted=FROM_FORWARDER,
            on_frame=self._accept,
            on_end=self._ended,
            on_bytes=self._count,
            pause=lambda frames, size: self._share.pace.pause(frames, size, time.monotonic()),
            urgent_most=_URGENT_MOST,
            is_over=self._is_over,
        )
        self._multiplexer.send(GateFrame(FrameKind.ROUTES, data=self._plan.table.encode()))

    def _ask_to_flush(self) -> None:
        if self._multiplexer is not None:
            self._multiplexer.send(GateFrame(FrameKind.FLUSH))

    def _end_all(self) -> None:
        if self._multiplexer is not None:
            self._multiplexer.close()
        self._ended(None)

    async def _close(self) -> None:
        self._end_all()
        for seconds in (_CLOSE_SECONDS, _LEAVE_SECONDS):
            if tasks := [one.task for one in self._dialled.values() if one.task is not None]:
                _, late = await asyncio.wait(tasks, timeout=seconds)
                for task in late:
                    task.cancel()
        for dialled in list(self._dialled.values()):
            logger.error("a connection goes on after its run", extra=self._extra("GATE_STAYS"))
            self._settle(dialled, ConnectionReason.RUN_ENDED)

    def _ended(self, error: ProtocolError | None) -> None:
        """Let connections end that the run has not ended in order; the others hand on their last bytes."""
        gate_loop().gates.discard(self)
        if error is not None:
            self.fault = str(error)
            logger.warning(
                "a runtime broke the gate's protocol: %s", error, extra=self._extra("GATE_FAULT")
            )
            # In a thread of its own: others may wait for names.
            threading.Thread(target=self._on_fault, name="isolane-gate-fault", daemon=True).start()
        self._is_open.set()
        self._is_flushed.set()
        for dialled in list(self._dialled.values()):
            if dialled.connection.is_reset:
                _stop(dialled, ConnectionReason.RUN_ENDED)

    def _accept(self, frame: GateFrame) -> None:
        match frame.kind:
            case FrameKind.LISTENING:
                self._is_open.set()
            case FrameKind.FLUSHED:
                self._is_flushed.set()
            case FrameKind.REFUSED_NAME:
                self._share.pace.charge_dial()
                self._refuse(bytes(frame.data).decode("utf-8", "replace"))
            case FrameKind.DIAL:
                self._take(frame.connection, frame.number)

    def _count(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            for dialled in list(self._dialled.values()):
                _stop(dialled, ConnectionReason.BYTES)

    def _refuse(self, name: str) -> None:
        self._refused += 1
        if self._refused > _REFUSED_MOST:
            return
        host = storable(name, _NAME_CHARACTERS)
        self._tell(
            ConnectionRecord(
                at=timezone.now(),
                is_refusal=True,
                host=host,
                port=0,
                reason=ConnectionReason.NOT_DECLARED,
            )
        )

    def _take(self, number: int, route: int) -> None:
        """Serve a new connection; numbers rise, and routes are those of the plan."""
        if number <= self._last_number:
            raise ProtocolError("DIAL: a connection's number was used before")
        if route >= len(self._plan.routes):
            raise ProtocolError("DIAL: there is no such route")
        assert self._multiplexer is not None  # noqa: S101 - it has called this
        if len(self._multiplexer.connections) >= _UNFINISHED_MOST:
            raise ProtocolError("DIAL: connections that were reset are not ended")
        self._share.pace.charge_dial()
        self._last_number = number
        dialled = _Dialled(self._plan.routes[route], self._multiplexer.open(number))
        if self._bytes_left < 0:
            self._record(dialled, ConnectionReason.BYTES, is_refusal=True)
            dialled.connection.reset()
            return
        self._dialled[number] = dialled
        dialled.task = asyncio.ensure_future(self._serve(dialled))

    async def _serve(self, dialled: _Dialled) -> None:
        """Serve a connection to its end and record it."""
        dialled.has_begun = True
        reason = ConnectionReason.RUN_ENDED
        try:
            reason = await self._reason_of_end(dialled)
            # A run may read slowly what an ordinary end has left it, if not for longer than it may be idle.
            is_ordinary = reason is ConnectionReason.CLOSED
            seconds = self._limits.idle_seconds if is_ordinary else _FINISH_SECONDS
            await dialled.connection.finish(seconds)
        finally:
            self._settle(dialled, reason)  # now all bytes are counted

    def _settle(self, dialled: _Dialled, reason: ConnectionReason) -> None:
        """Forget a connection and record it; once."""
        if self._dialled.pop(dialled.connection.number, None):
            if dialled.is_open:
                self._open.leave()
            ended = dialled.reason or reason
            refused = ended in REFUSALS and not dialled.has_carried
            self._record(dialled, ended, is_refusal=refused)

    async def _reason_of_end(self, dialled: _Dialled) -> ConnectionReason:
        if dialled.reason is not None:
            dialled.connection.reset()
            return dialled.reason
        reason = ConnectionReason.CLOSED
        try:
            dialled.is_open = await self._open.enter(dialled.connection)
            if not dialled.is_open:
                was_left = dialled.connection.is_reset  # by the run, which has not waited
                dialled.connection.reset()
                return ConnectionReason.RESET if was_left else ConnectionReason.CONNECTIONS
            dialled.connection.active_at = time.monotonic()  # it could not be before
            connect = partial(dial, dialled.route)
            if dialled.route.broker is None:
                await tunnel(dialled.connection, connect)
            else:
                await dialled.route.broker.serve(dialled.connection, connect)
        except ConnectionEnded as ended:
            reason, dialled.has_carried = ended.reason, ended.has_carried
            self._log_end(ended)
        except (OSError, EOFError):
            reason = _reason_of_break(dialled.connection)
            if self._is_over():
                reason = ConnectionReason.RUN_ENDED
            dialled.connection.reset()  # the run must not take what it has got for all
        except asyncio.CancelledError:
            reason = ConnectionReason.RUN_ENDED
            dialled.connection.reset()
        except Exception:
            reason, dialled.has_carried = ConnectionReason.PROTOCOL, True
            logger.exception("a connection was not served", extra=self._extra("GATE_ERROR"))
            dialled.connection.reset()
        return reason

    def _log_end(self, ended: ConnectionEnded) -> None:
        """Log it for operators, who need no more of one run than there are events."""
        self._logged += 1
        if self._logged <= MAX_REFUSALS:
            logger.info("a connection ended: %s", ended, extra=self._extra("CONNECTION_ENDED"))

    def _record(self, dialled: _Dialled, reason: ConnectionReason, *, is_refusal: bool) -> None:
        connection, route = dialled.connection, dialled.route
        self._tell(
            ConnectionRecord(
                at=timezone.now(),
                is_refusal=is_refusal,
                host=route.host,
                port=route.port,
                definition=route.definition,
                sent=connection.received,
                received=connection.sent,
                seconds=time.monotonic() - dialled.began,
                reason=reason,
                has_broker=route.broker is not None,
            )
        )

    def _tell(self, record: ConnectionRecord) -> None:
        try:
            self._on_connection(record)
        except Exception:  # the connections go on
            logger.exception("a connection was not recorded", extra=self._extra("GATE_ERROR"))


def _reason_of_break(connection: GateConnection) -> ConnectionReason:
    """Say who has broken off a connection that did not end in order."""
    if connection.has_left:
        return ConnectionReason.CLOSED
    # Once the run has ended, an end of the server's is no fault.
    is_over = connection.was_ended_by_peer
    return ConnectionReason.RESET if is_over else ConnectionReason.SERVER_RESET


def _stop(dialled: _Dialled, reason: ConnectionReason) -> None:
    """Have a connection end for this reason; called again, cancel it again if it has gone on for some time."""
    dialled.reason = dialled.reason or reason
    now = time.monotonic()
    if dialled.task and dialled.has_begun and now > dialled.stopped_at + _AGAIN_SECONDS:
        dialled.stopped_at = now
        dialled.task.cancel()
