"""resources.gate.brokers.remote_stream: a server cannot send without end what is no body."""

import asyncio
from typing import Any

import httpcore
import pytest

from resources.gate.brokers.remote_stream import OVERHEAD_MAX, RemoteStream
from resources.gate.brokers.share import Share

DATA = 0


class Transport(asyncio.Transport):
    """One on which HTTP/2 was agreed on."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "ssl_object" else default

    def selected_alpn_protocol(self) -> str:
        return "h2"

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def frames(number: int, size: int) -> bytes:
    return (size.to_bytes(3, "big") + bytes([DATA, 0]) + bytes(4) + bytes(size)) * number


async def read(sent: bytes, *, body: int) -> int:
    """Read this, of which each frame has so much of a body; return how many bytes were taken."""
    stream = RemoteStream(lambda _: None, Share())
    stream.connection_made(Transport())
    stream.data_received(sent)
    stream.eof_received()
    taken, frame = 0, 9 + body
    while data := await stream.read(64 * 1024):
        taken += len(data)
        stream.note_body(len(data) * body // frame)
    return taken


def test_frames_without_a_body_are_few() -> None:
    with pytest.raises(httpcore.ReadError, match="too much beside its answer"):
        asyncio.run(read(frames(OVERHEAD_MAX // 100, 0), body=0))


@pytest.mark.parametrize("size", [40, 16_000])
def test_frames_of_a_body_are_as_many_as_it_has(size: int) -> None:
    sent = frames(4 * OVERHEAD_MAX // size, size)
    assert asyncio.run(read(sent, body=size)) == len(sent)
