"""Flower's server takes no more than it needs, before its login."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tornado.web import Application

from orchestrator import flower_server

Connect = Callable[[bytes], Awaitable[asyncio.StreamReader]]


def serve(scenario: Callable[[Connect], Awaitable[None]]) -> None:
    """Run the scenario against an application without pages."""

    async def run() -> None:
        writers = []
        server = flower_server.listen(Application([]), "127.0.0.1", 0)
        port = next(iter(server._sockets.values())).getsockname()[1]

        async def connect(sent: bytes) -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writers.append(writer)
            return reader

        async with asyncio.timeout(10):
            await scenario(connect)
        for writer in writers:
            writer.close()
        server.stop()
        await server.close_all_connections()

    asyncio.run(run())


CHUNKS = b"f0000\r\n" + b"x" * 0xF0000 + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "header", [b"Content-Length: %d" % len(CHUNKS), b"Transfer-Encoding: chunked"]
)
def test_a_body_beyond_the_limit_is_not_read(header: bytes) -> None:
    async def scenario(connect: Connect) -> None:
        answer = await connect(b"POST / HTTP/1.1\r\nHost: h\r\n" + header + b"\r\n\r\n" + CHUNKS)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer.readuntil(b"HTTP/1.1 404")  # no handler has seen it

    serve(scenario)


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
)
def test_half_a_request_is_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower_server, "HEADER_SECONDS", 0.2)
    monkeypatch.setattr(flower_server, "BODY_SECONDS", 0.2)

    async def scenario(connect: Connect) -> None:
        assert b"200" not in await (await connect(sent)).read()

    serve(scenario)


def test_a_new_connection_takes_the_place_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower_server, "MAX_CONNECTIONS", 3)

    async def scenario(connect: Connect) -> None:
        half = [await connect(b"GET / HT") for _ in range(6)]
        answer = await connect(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert (await answer.read()).startswith(b"HTTP/1.1 404")
        for dropped in half[:4]:
            assert await dropped.read() == b""
        assert not any(one.at_eof() for one in half[4:])

    serve(scenario)
