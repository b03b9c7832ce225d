"""Remote servers on loopback, and the far end of a gate channel as an untrusted runtime would use it."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from isolane.channel import channel_pair
from isolane.gate.frames import (
    FROM_FORWARDER,
    TO_FORWARDER,
    WINDOW,
    FrameKind,
    FrameReader,
    GateFrame,
    encode,
)
from isolane.gate.routes import RouteTable
from isolane.limits import RunLimits
from resources.gate.brokers.base import Broker
from resources.gate.brokers.share import Share
from resources.gate.gate import Gate
from resources.gate.plan import GatePlan, Route
from resources.gate.record import ConnectionReason, ConnectionRecord
from tests.waiting import wait_for

Serve = Callable[[socket.socket], object]
SECONDS = 10.0
_PIECE = 50_000  # bytes


class Remote:
    """A server that does the same with each connection."""

    def __init__(self, serve: Serve, address: str) -> None:
        self._serve = serve
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, 0), family=family)
        self.port: int = self._listening.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self.got = bytearray()
        self.ends: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listening.accept()
                sock.settimeout(SECONDS)
                self.accepted.append(sock)
                threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        try:
            self._serve(sock)
            self.ends.append("ended")
        except OSError as error:
            self.ends.append(type(error).__name__)

    def read_all(self, sock: socket.socket) -> None:
        """Keep what comes, to its end."""
        while data := sock.recv(65536):
            self.got += data

    def close_listener(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def close(self) -> None:
        """End all."""
        self.close_listener()
        self._thread.join(SECONDS)
        for sock in self.accepted:
            sock.close()


def echo(sock: socket.socket) -> None:
    """Send back what comes, and end with it."""
    while data := sock.recv(65536):
        sock.sendall(data)
    sock.close()


@contextlib.contextmanager
def a_remote(serve: Serve = echo, *, address: str = "127.0.0.1") -> Iterator[Remote]:
    """Run a server."""
    remote = Remote(serve, address)
    try:
        yield remote
    finally:
        remote.close()


@contextlib.contextmanager
def a_sink() -> Iterator[Remote]:
    """Run a server that keeps what comes."""

    def read(sock: socket.socket) -> None:
        remote.read_all(sock)
        sock.close()

    with a_remote(read) as remote:
        yield remote


def a_route(port: int, *, host: str = "api.example.com", **changes: Any) -> Route:
    """Build a route to a port of loopback, as if it were the platform's own, which needs no policy."""
    fields: dict[str, Any] = {
        "definition": "api", "host": host, "port": port, "server_port": port, "address": "127.0.0.1",
        "broker": None, "is_platforms": True,
    }  # fmt: skip
    return Route(**fields | changes)


class Runtime:
    """The far end, in the test's hands, of a real gate."""

    def __init__(self, *routes: Route, share: Share | None = None, **limits: int) -> None:
        ours, self.channel = channel_pair()
        self.records: list[ConnectionRecord] = []
        self.faults: list[str] = []
        self.gate = Gate(
            GatePlan(routes, RouteTable(), ()),
            limits=RunLimits(**limits),
            on_connection=self.records.append,
            ids={"execution_id": "e1"},
            share=share or Share(),
        )
        self.is_over = False  # its keepalive has run out
        self.gate.start(
            ours,
            on_fault=lambda: self.faults.append(self.gate.fault),
            is_over=lambda: self.is_over,
        )
        self._reader = FrameReader(TO_FORWARDER | FROM_FORWARDER)
        self._frames: list[GateFrame] = []

    def send(self, *frames: GateFrame) -> None:
        """Send frames."""
        self.send_bytes(b"".join(map(encode, frames)))

    def send_bytes(self, data: bytes) -> None:
        """Send bytes, as the gate takes them."""
        rest = memoryview(data)

        def is_sent() -> bool:
            nonlocal rest
            with contextlib.suppress(BlockingIOError):
                rest = rest[self.channel.send(rest) :]
            return not rest

        wait_for(is_sent, "the gate takes bytes", SECONDS)

    def dial(self, number: int, data: bytes = b"", *, route: int = 0, ends: bool = False) -> None:
        """Begin a connection."""
        self.send(GateFrame(FrameKind.DIAL, number, route))
        if data:
            self.send(GateFrame(FrameKind.DATA, number, 0, data))
        if ends:
            self.send(GateFrame(FrameKind.END, number))

    def fill(self, number: int, sent: int) -> None:
        """Send until there is no more credit, and none comes; so many bytes were sent before."""
        last = time.monotonic()
        while time.monotonic() < last + 0.5:
            frames = (each for each in self.receive() if each.connection == number)
            given = sum(each.number for each in frames if each.kind is FrameKind.CREDIT)
            if WINDOW + given - sent >= _PIECE:
                self.send(GateFrame(FrameKind.DATA, number, 0, bytes(_PIECE)))
                sent, last = sent + _PIECE, time.monotonic()

    def receive(self) -> list[GateFrame]:
        """Return all frames up to now."""
        with contextlib.suppress(BlockingIOError):
            while data := self.channel.receive(65536):
                self._frames += self._reader.feed(data)
        return self._frames

    def wait_for_frame(self, kind: FrameKind, number: int) -> GateFrame:
        """Wait for one."""

        def found() -> GateFrame | None:
            frames = (each for each in self.receive() if (each[0], each[1]) == (kind, number))
            return next(frames, None)

        return wait_for(found, f"{kind.name} of {number}", SECONDS)

    def bytes_of(self, number: int) -> bytes:
        """Return what came over a connection up to now."""
        frames = [each for each in self.receive() if each.kind is FrameKind.DATA]
        return b"".join(each.data for each in frames if each.connection == number)

    @property
    def reasons(self) -> list[ConnectionReason]:
        """How its connections ended."""
        return [record.reason for record in self.records]

    def wait_for_reasons(self, *reasons: ConnectionReason) -> list[ConnectionRecord]:
        """Wait for exactly these records."""
        wait_for(lambda: len(self.records) >= len(reasons), f"{len(reasons)} records", SECONDS)
        assert self.reasons == list(reasons)
        return self.records

    def wait_for_fault(self) -> str:
        """Wait until the gate has ended it, and nobody is left of it."""
        wait_for(lambda: self.faults, "a fault", SECONDS)
        return self.faults[0]


@contextlib.contextmanager
def a_runtime(*routes: Route, share: Share | None = None, **limits: int) -> Iterator[Runtime]:
    """Hold the far end of a gate."""
    runtime = Runtime(*routes, share=share, **limits)
    try:
        yield runtime
    finally:
        runtime.channel.close()
        runtime.gate.close()


def sockets_to(port: int) -> int:
    """Return how many sockets of this process are connected to a port."""
    found = psutil.Process().net_connections("tcp")
    return sum(bool(one.raddr) and one.raddr.port == port for one in found)


@contextlib.contextmanager
def a_full_server() -> Iterator[int]:
    """Listen at a port that accepts nothing more, and refuses nothing."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port: int = full.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


class Broken(Broker):
    """A broker with a fault in its code."""

    async def serve(self, inside: object, connect: object) -> None:
        """Fail."""
        raise ZeroDivisionError
