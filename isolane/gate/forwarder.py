"""The forwarder: a process of each sandbox that is the other end of the worker's gate.

It listens at the routes' addresses and answers for their names; every connection goes to the worker over the gate
channel. It holds no secret, and the worker trusts it no more than a step.

It is a process of its own, as a driver may hold the interpreter's lock while the C library asks for a name.

Timing: see isolane.gate.multiplexer.
Model: async, an event loop in the only thread of a fork that the guard has made before any step runs.
Guarantee: nothing but the routes is reached, and no other name is known.
Failure: it ends with the channel; a connection that the worker refuses is reset.
"""

import asyncio
import contextlib
import os
import socket
import time
from typing import NoReturn

from isolane.channel import Channel
from isolane.gate.connection import GateConnection
from isolane.gate.dns import reply_to
from isolane.gate.frames import NAME_MAX, TO_FORWARDER, FrameKind, GateFrame
from isolane.gate.held_sockets import Ends, ends_of_peer, held_sockets
from isolane.gate.multiplexer import Multiplexer
from isolane.gate.routes import Listener, RouteTable
from isolane.gate.socket_relay import relay_socket

NAMESERVER = ("127.0.0.1", 53)
_BACKLOG = 128
_DATAGRAM_MAX = 4096
_QUERIES_AT_ONCE = 64
_REFUSED_MOST = 1000  # names that are reported; a run that asks for more is not told of
_QUIET_TURNS = 10  # a connection that is accepted needs some until its first bytes are read
_FLUSH_PAUSE = 0.002  # seconds, while bytes wait for credit
_ACCEPT_PAUSE = 0.1  # seconds
# Between two looks for connections that their program has closed: at first behind an end, then, and without one.
_LOOK_FIRST, _LOOK_MOST, _LOOK_SELDOM = 0.02, 1.0, 5.0
_STALLED_SECONDS = 10.0  # without credit
_IPV6_FREEBIND = 78


def bind_nameserver() -> socket.socket:
    """Return the socket at which queries come; its owner may not be the one that answers."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    sock.bind(NAMESERVER)
    return sock


def forward(channel: Channel, nameserver: socket.socket) -> NoReturn:
    """Serve the gate channel until it ends, and this process with it."""
    try:
        asyncio.run(_Forwarder(channel, nameserver).serve())
        os._exit(0)
    finally:
        os._exit(1)  # the guard ends the run, which would have no network any more


class _Forwarder:
    def __init__(self, channel: Channel, nameserver: socket.socket) -> None:
        self._channel = channel
        self._nameserver = nameserver
        self._table = RouteTable()
        self._has_v6 = True
        self._last_number = 0
        self._refused: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._served: dict[GateConnection, Ends] = {}  # with the program's end of each
        self._ends = asyncio.Event()  # of a direction, since the last look

    async def serve(self) -> None:
        ended = asyncio.Event()
        self._multiplexer = Multiplexer(
            self._channel,
            accepted=TO_FORWARDER,
            on_frame=self._accept,
            on_end=lambda _: ended.set(),
        )
        await ended.wait()

    def _accept(self, frame: GateFrame) -> None:
        if frame.kind is FrameKind.ROUTES:
            self._table = RouteTable.decode(bytes(frame.data))
            self._keep(asyncio.ensure_future(self._open_routes()))
        else:  # FLUSH
            self._keep(asyncio.ensure_future(self._flush()))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._drop)

    def _drop(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            os._exit(1)  # it cannot listen: the run has no network, and its guard ends it

    # --- names
    def _answer_queries(self) -> None:
        for _ in range(_QUERIES_AT_ONCE):
            try:
                query, sender = self._nameserver.recvfrom(_DATAGRAM_MAX)
            except OSError:
                return
            if (reply := reply_to(query, self._table.names, has_v6=self._has_v6)) is None:
                continue
            if reply.refused_name:
                self._report(reply.refused_name)
            with contextlib.suppress(OSError):
                self._nameserver.sendto(reply.data, sender)

    def _report(self, name: str) -> None:
        if name not in self._refused and len(self._refused) < _REFUSED_MOST:
            self._refused.add(name)  # programs ask for both families, and again
            data = name.encode("utf-8", "replace")[:NAME_MAX]
            self._multiplexer.send(GateFrame(FrameKind.REFUSED_NAME, data=data))

    # --- connections
    async def _open_routes(self) -> None:
        asyncio.get_running_loop().add_reader(self._nameserver, self._answer_queries)
        for listener in self._table.listeners:
            for sock in self._sockets_of(listener):
                self._keep(asyncio.ensure_future(self._take_all(sock, listener.route)))
        self._keep(asyncio.ensure_future(self._end_closed()))
        self._multiplexer.send(GateFrame(FrameKind.LISTENING))

    def _sockets_of(self, listener: Listener) -> list[socket.socket]:
        """Return a socket for each family; a machine may have no IPv6."""
        found = [_listening(socket.AF_INET, listener.address.v4, listener.port)]
        if self._has_v6:
            try:
                found.append(_listening(socket.AF_INET6, listener.address.v6, listener.port))
            except OSError:
                self._has_v6 = False
        return found

    async def _take_all(self, listening: socket.socket, route: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError:  # it has no descriptor left, or the connection was broken off already
                await asyncio.sleep(_ACCEPT_PAUSE)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._keep(asyncio.ensure_future(self._take(sock, route)))

    async def _take(self, sock: socket.socket, route: int) -> None:
        self._last_number += 1
        connection = self._multiplexer.open(self._last_number)
        self._multiplexer.send(GateFrame(FrameKind.DIAL, connection.number, route))
        try:
            self._served[connection] = ends_of_peer(sock)
            await relay_socket(connection, sock, on_end=self._ends.set)
        except OSError:  # both sides see it
            connection.reset()
            sock.close()
        finally:
            self._served.pop(connection, None)

    async def _end_closed(self) -> None:
        """Reset connections that wait for a server though their program has closed them; each is seen so twice."""
        suspects: set[GateConnection] = set()
        pause = _LOOK_SELDOM
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ends.wait()
                    self._ends.clear()
                    pause = _LOOK_FIRST / 2
                    await asyncio.sleep(_LOOK_FIRST)
            waiting = {one for one in self._served if _waits(one)}
            held = held_sockets() if waiting else set()
            closed = {one for one in waiting if self._served[one] not in held}
            for connection in closed & suspects:
                connection.reset()
            suspects = closed
            pause = min(2 * pause, _LOOK_MOST) if waiting else _LOOK_SELDOM

    async def _flush(self) -> None:
        """Answer when nothing has come for some turns of the loop, each of which looks at all sockets."""
        quiet = 0
        before: tuple[int, ...] = ()
        while quiet < _QUIET_TURNS:
            connections = self._multiplexer.connections.values()
            is_waiting = any(connection.has_unsent for connection in connections)
            now = (self._last_number, *(connection.sent for connection in connections))
            quiet, before = (0 if is_waiting or now != before else quiet + 1), now
            await asyncio.sleep(_FLUSH_PAUSE if is_waiting else 0)
        self._multiplexer.send(GateFrame(FrameKind.FLUSHED))


def _waits(connection: GateConnection) -> bool:
    """Say whether nothing but the server is waited for: its end, or for so long that it reads."""
    is_stalled = connection.is_full and time.monotonic() > connection.active_at + _STALLED_SECONDS
    return connection.waits_for_end or is_stalled


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # The address is of a route to this machine, and of no interface.
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
