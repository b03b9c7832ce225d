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


class PlainTransport(Transport):
    """One on which HTTP/1.1 was agreed on."""

    def selected_alpn_protocol(self) -> str:
        return "http/1.1"


def test_the_first_bytes_of_an_answer_are_few_whatever_the_one_before_had() -> None:
    async def sizes() -> list[int]:
        stream = RemoteStream(lambda _: None, Share())
        stream.connection_made(PlainTransport())
        stream.data_received(bytes(60_000))
        found = []
        for _ in range(2):
            stream.begin_answer()
            for _ in range(2):
                found.append(len(await stream.read(64 * 1024)))
                stream.note_body(found[-1])
        return found

    assert asyncio.run(sizes()) == [1024, 32 * 1024, 1024, 60_000 - 34 * 1024]


def test_in_http_2_only_one_frame_is_read_in_a_large_piece() -> None:
    async def sizes() -> list[int]:
        stream = RemoteStream(lambda _: None, Share())
        stream.connection_made(Transport())
        stream.data_received(frames(1, 16_000) + frames(1000, 0))
        found = []
        for _ in range(4):
            found.append(len(await stream.read(64 * 1024)))
            stream.note_body(found[-1])
        return found

    assert asyncio.run(sizes()) == [1024, 16_000 + 9 - 1024, 1024, 1024]
