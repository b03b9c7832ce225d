"""A host for one broker: it listens on loopback, as the forwarder of a sandbox does, and notes how connections end."""

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Iterator

from resources.gate.brokers.base import Broker
from resources.gate.record import ConnectionEnded
from tests.integration.resources.gate.brokers.brokered import RunEnd, connected_to


class BrokerHost:
    """Serves each connection with the broker, which reaches one port of loopback."""

    def __init__(self, broker: Broker, remote_port: int, listener: socket.socket) -> None:
        self._broker = broker
        self._remote_port = remote_port
        self._listener = listener
        self._tasks: set[asyncio.Task[None]] = set()
        self.connects = 0  # to the remote server
        self.most_kept = 0  # bytes that waited for the run at once
        self.ends: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self.refusal: ConnectionEnded | None = None  # of all connections to the remote server
        self.loop_errors: list[str] = []

    @contextlib.contextmanager
    def serving(self) -> Iterator["BrokerHost"]:
        """Listen until the block ends."""
        ended, loop = asyncio.Event(), asyncio.new_event_loop()
        loop.set_exception_handler(lambda _, said: self.loop_errors.append(str(said)))
        thread = threading.Thread(target=loop.run_until_complete, args=(self._run(ended),))
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()
            loop.close()
        assert self.loop_errors == []

    async def connect(self) -> socket.socket:
        """Connect to the remote server."""
        self.connects += 1
        if self.refusal:
            raise self.refusal
        return await connected_to(self._remote_port)

    async def _run(self, ended: asyncio.Event) -> None:
        server = await asyncio.start_server(self._accept, sock=self._listener)
        await ended.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
        await asyncio.sleep(0)  # closed transports say so in the next turn

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end: BaseException | None = None
        try:
            await self._broker.serve(_Connection(self, reader, writer), self.connect)
        except BaseException as error:  # noqa: BLE001 - the tests look at all of them
            end = error
        self.ends.put(end)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _Connection(RunEnd):
    """The connection of a run, with a note of what waits for it."""

    def __init__(
        self, host: BrokerHost, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(reader, writer)
        self._host = host

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        kept = self._writer.transport.get_write_buffer_size()
        self._host.most_kept = max(self._host.most_kept, kept)
        await self._writer.drain()
