"""Two ends of a gate channel in one event loop, joined by real pipes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from isolane.channel import Channel, channel_pair
from isolane.gate.connection import GateConnection
from isolane.gate.frames import FROM_FORWARDER, TO_FORWARDER, FrameKind, GateFrame
from isolane.gate.multiplexer import Multiplexer
from isolane.protocol import ProtocolError

SECONDS = 10.0


class End:
    """One end, and what it was told."""

    def __init__(
        self,
        channel: Channel,
        *,
        accepted: frozenset[FrameKind],
        on_frame: Callable[[GateFrame], object] = lambda _: None,
        **options: Any,
    ) -> None:
        self.frames: list[GateFrame] = []
        self.ended: list[ProtocolError | None] = []
        self.on_frame = on_frame
        self.multiplexer = Multiplexer(
            channel, accepted=accepted, on_frame=self._hear, on_end=self.ended.append, **options
        )

    def _hear(self, frame: GateFrame) -> None:
        self.frames.append(frame)
        self.on_frame(frame)

    @property
    def numbers(self) -> list[int]:
        """The connections that it knows."""
        return list(self.multiplexer.connections)


@dataclass
class Ends:
    """The sandbox's end and the worker's."""

    inside: End
    worker: End

    async def connection(self, number: int = 1) -> tuple[GateConnection, GateConnection]:
        """Begin a connection; return its inner end and the worker's."""
        inner = self.inside.multiplexer.open(number)
        self.inside.multiplexer.send(GateFrame(FrameKind.DIAL, number, 0))
        await until(lambda: number in self.worker.numbers)
        return inner, self.worker.multiplexer.connections[number]

    async def forgotten(self) -> None:
        """Wait until neither side knows a connection, and check that nobody was at fault."""
        await until(lambda: not (self.inside.numbers or self.worker.numbers))
        assert self.inside.ended == self.worker.ended == []


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until it is true."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def both_ends() -> AsyncIterator[Ends]:
    """Join two ends; the worker's opens each connection that is dialled."""
    ours, theirs = channel_pair()

    def take(frame: GateFrame) -> None:
        if frame.kind is FrameKind.DIAL:
            worker.multiplexer.open(frame.connection)

    worker = End(ours, accepted=FROM_FORWARDER, on_frame=take, urgent_most=1024)
    inside = End(theirs, accepted=TO_FORWARDER)
    try:
        yield Ends(inside, worker)
    finally:
        inside.multiplexer.close()
        worker.multiplexer.close()


def run(test: Callable[[Ends], Awaitable[object]]) -> None:
    """Run a test with both ends."""

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), both_ends() as ends:
            await test(ends)

    asyncio.run(whole())


async def read_all(connection: GateConnection) -> bytes:
    """Read to the end of the other side's direction."""
    found = bytearray()
    while data := await connection.read():
        found += data
    return bytes(found)
