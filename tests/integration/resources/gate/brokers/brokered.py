"""A broker behind a port on loopback, as a run's client sees it; and servers with TLS for it to connect to.

Timing: as long as the block. Model: all in one event loop in a thread.
Guarantee: `ended` has one entry per served connection, its error or None. Failure: bubble, at the end of the block.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from resources.gate.brokers.base import Broker
from resources.gate.brokers.relay import PIECE
from tests.waiting import wait_for

LOOPBACK = "127.0.0.1"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def connected_to(port: int) -> socket.socket:
    """Return a socket that is connected to a port of loopback, as the gate hands it to a broker."""
    connected = socket.socket()
    connected.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connected, (LOOPBACK, port))
    except OSError:
        connected.close()
        raise
    return connected


class RunEnd:
    """The gate's end of a run's connection, over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._closed: asyncio.Future[None] | None = None
        self.charged = 0

    def charge(self, size: int, /) -> None:
        self.charged += size

    async def read(self) -> bytes:
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def write_eof(self) -> None:
        self._writer.write_eof()

    async def gone(self) -> None:
        # One wait for all: who gives it up must not cancel that of others, which a stream's own does.
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._writer.wait_closed())
            self._closed.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({self._closed})

    def reset(self) -> None:
        self._writer.transport.abort()


class Ports:
    """Opens ports on loopback in one loop; `ended` are the connections that brokers have served."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self.ended: list[BaseException | None] = []

    def broker(self, broker: Broker, target: int, *, error: Exception | None = None) -> int:
        """Serve with this broker, which connects to the port `target`, or cannot."""

        async def connect() -> socket.socket:
            if error:
                raise error
            return await connected_to(target)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await broker.serve(RunEnd(reader, writer), connect)
            except Exception as caught:  # noqa: BLE001 - the test judges it
                self.ended.append(caught)
            else:
                self.ended.append(None)

        return self.open(serve)

    def open(self, handler: Handler, tls: ssl.SSLContext | None = None) -> int:
        """Return a port that this handler serves."""
        return int(self.run(self._open(handler, tls)))

    def tls_front(self, tls: ssl.SSLContext, target: int) -> int:
        """Return a port that adds TLS to the PostgreSQL at the port `target`."""

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await join(reader, writer, target)

        return self.after_tls_request(pass_on, tls)

    def after_tls_request(self, handler: Handler, tls: ssl.SSLContext) -> int:
        """Return a port whose connections ask for TLS as clients of PostgreSQL do, and get it."""
        listening = socket.create_server((LOOPBACK, 0))
        listening.setblocking(False)
        self._loop.call_soon_threadsafe(lambda: self._keep(self._accept(listening, handler, tls)))
        return int(listening.getsockname()[1])

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def wait_ended(self, number: int) -> list[BaseException | None]:
        """Wait until so many connections have been served."""
        wait_for(lambda: len(self.ended) >= number, "the broker to end", 10)
        return self.ended

    async def end(self) -> None:
        """End what is still served."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports are closed in a step of their own

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, handler: Handler, tls: ssl.SSLContext | None) -> int:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _closing(handler, reader, writer)

        server = await asyncio.start_server(handle, LOOPBACK, 0, ssl=tls)
        self._keep(_forever(server))
        return int(server.sockets[0].getsockname()[1])

    async def _accept(
        self, listening: socket.socket, handler: Handler, tls: ssl.SSLContext
    ) -> None:
        with listening:
            while True:
                accepted, _ = await self._loop.sock_accept(listening)
                self._keep(self._secure(accepted, handler, tls))

    async def _secure(self, accepted: socket.socket, handler: Handler, tls: ssl.SSLContext) -> None:
        with accepted:
            assert len(await self._loop.sock_recv(accepted, 8)) == 8
            await self._loop.sock_sendall(accepted, b"S")
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            with contextlib.suppress(OSError):  # a client that does not trust it
                transport, _ = await self._loop.connect_accepted_socket(
                    lambda: protocol, accepted, ssl=tls
                )
                writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
                await _closing(handler, reader, writer)


async def _forever(server: asyncio.Server) -> None:
    async with server:
        await server.serve_forever()


async def _closing(
    handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        await handler(reader, writer)
        writer.close()
        await writer.wait_closed()
    except OSError:
        pass
    finally:
        writer.transport.abort()


async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
    far_reader, far_writer = await asyncio.open_connection(LOOPBACK, target)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
        sink.close()

    try:
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
    finally:
        far_writer.transport.abort()


@contextlib.contextmanager
def ports() -> Iterator[Ports]:
    """Run a loop in a thread; everything in it is ended with the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = Ports(loop)
    try:
        yield opened
    finally:
        opened.run(opened.end())
        opened.run(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
