"""The two ends of a connection in TLS: the gate's, and a server in a thread."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from resources.gate.brokers.share import Share
from resources.gate.brokers.tls_handshake import TlsClient
from resources.gate.brokers.transport import open_transport
from tests.integration.resources.gate.brokers.tls_peer import TlsPeer, stale_descriptors
from tests.tls_certificates import TestAuthority

HOST = "db.example.com"
MB = 1024 * 1024
Serve = Callable[[TlsPeer], object]


def uncounted(_: int) -> None:
    """Count nothing."""


class Notes(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.ends: list[str] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.sizes.append(len(data))

    def eof_received(self) -> None:
        self.ends.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.ends.append("lost")
        self.lost.set_result(exc)


class Ends:
    """The two ends of a connection: a socket for the gate, and a server in a thread."""

    def __init__(self, authority: TestAuthority, serve: Serve, *, tickets: int = 2) -> None:
        self.ours, self._theirs = socket.socketpair()
        self.tls = TlsClient(
            context=ssl.create_default_context(cadata=authority.pem), host=HOST, share=Share()
        )
        context = authority.issue(HOST).server_context()
        context.num_tickets = tickets
        self._peer = TlsPeer(self._theirs, context)
        self._theirs.settimeout(10)
        self.is_over = threading.Event()  # the test
        self.error: Exception | None = None
        self._serve = serve
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Ends":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self._thread.join()
        self._theirs.close()
        assert self.ours.fileno() == -1, "the gate has kept the socket"

    def _run(self) -> None:
        try:
            self._peer.shake_hands()
            self._serve(self._peer)
        except Exception as error:  # noqa: BLE001 - the test judges it
            self.error = error

    @contextlib.asynccontextmanager
    async def transport(self, protocol: asyncio.Protocol) -> AsyncIterator[asyncio.Transport]:
        """Open the gate's end; at the end it must have gone by itself."""
        transport = await open_transport(
            self.ours, protocol, self.tls, charge=uncounted, close_seconds=0.3
        )
        yield transport
        async with asyncio.timeout(5):
            while self.ours.fileno() >= 0:
                await asyncio.sleep(0.005)
        assert stale_descriptors(asyncio.get_running_loop()) == []


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it; an error in a callback is one of the test."""
    errors: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: errors.append(said))
        async with asyncio.timeout(20):
            await work

    asyncio.run(watched())
    assert errors == []


def wait_until_over(ends: Callable[[], Ends]) -> Serve:
    return lambda _: ends().is_over.wait(10)


async def stalled(sent: Callable[[], int]) -> int:
    """Wait until a server sends no more, and return how much it has sent."""
    before = -1
    while sent() != before:
        before = sent()
        await asyncio.sleep(0.2)
    return before
