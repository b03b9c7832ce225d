"""The base of the TLS servers: listens on loopback, counts, remembers the names it was asked for.

Timing: as long as its block. Model: an asyncio loop in a thread of its own. Guarantee: a connection is counted before
anything is sent to it. Failure: a connection that fails is closed; the server goes on.
"""

import asyncio
import contextlib
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

from tests.tls_certificates import Certificate

LOOPBACK = "127.0.0.1"
_HANDSHAKE = 10.0  # seconds


class TlsServer(ABC):
    """Each connection is handed to `serve` after its handshake."""

    protocols: tuple[str, ...] = ()  # of ALPN

    def __init__(self, certificate: Certificate, *, host: str = LOOPBACK) -> None:
        self.host = host
        self.port = 0  # any, unless it is set before; known once it listens
        self.connections = 0  # accepted, whether or not a handshake followed
        self.handshakes = 0
        self.server_names: list[str | None] = []  # that clients asked for, one for each handshake
        self._context = certificate.server_context(*self.protocols)
        self._context.sni_callback = self._note_name
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to a client until one side has had enough."""

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Do what the protocol does before TLS; return False to end the connection."""
        return True

    @contextlib.contextmanager
    def serving(self) -> Iterator[Self]:
        """Listen until the block ends; connections that are still open are cut then."""
        listening, failure = threading.Event(), list[OSError]()
        loop = asyncio.new_event_loop()
        ended = asyncio.Event()

        def run() -> None:
            try:
                loop.run_until_complete(self._run(listening, ended))
            except OSError as error:  # it cannot listen
                failure.append(error)
            finally:
                loop.close()
                listening.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        listening.wait()
        if failure:
            raise failure[0]
        try:
            yield self
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has failed, and is closed
                loop.call_soon_threadsafe(ended.set)
            thread.join()
        if failure:
            raise failure[0]

    async def _run(self, listening: threading.Event, ended: asyncio.Event) -> None:
        server = await asyncio.start_server(self._accept, self.host, self.port)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await ended.wait()
        server.close()
        # Also what asyncio does for a connection that was accepted a moment ago, and is not handed over yet.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports say so in the next turn

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)

        def drop(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not writer.is_closing():  # also of a task that was cancelled before it began
                writer.transport.abort()

        task.add_done_callback(drop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await self.greet(reader, writer):
                await writer.start_tls(self._context, ssl_handshake_timeout=_HANDSHAKE)
                self.handshakes += 1
                await self.serve(reader, writer)
                writer.close()
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # a client may leave as it likes, and the server when its block ends

    def _note_name(self, tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        self.server_names.append(name)
