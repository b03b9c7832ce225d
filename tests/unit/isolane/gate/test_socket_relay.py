"""isolane.gate.socket_relay: between a connection over the gate channel and a real socket."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest

from isolane.gate.connection import GateConnection
from isolane.gate.frames import WINDOW
from isolane.gate.socket_relay import relay_socket
from tests.unit.isolane.gate.ends import Ends, read_all, run, until

MB = 1024 * 1024
RESETS = struct.pack("ii", 1, 0)
Test = Callable[[GateConnection, socket.socket, "asyncio.Task[None]"], Awaitable[object]]


def relayed(test: Test) -> None:
    """Run a test with the far end of a connection, the far end of a socket, and the relay between them."""

    async def whole(ends: Ends) -> None:
        inner, outer = await ends.connection()
        listening = socket.create_server(("127.0.0.1", 0))
        with listening, socket.create_connection(listening.getsockname()) as ours:
            theirs, _ = listening.accept()
            with theirs:
                theirs.setblocking(False)
                relaying = asyncio.ensure_future(relay_socket(outer, ours))
                await test(inner, theirs, relaying)
                relaying.cancel()
                await asyncio.gather(relaying, return_exceptions=True)
                await asyncio.sleep(0)

    run(whole)


async def received(sock: socket.socket) -> bytes:
    """Read a socket to its end."""
    loop, found = asyncio.get_running_loop(), bytearray()
    while data := await loop.sock_recv(sock, 65536):
        found += data
    return bytes(found)


def test_the_run_may_end_first() -> None:
    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        await inner.write(b"question")
        inner.write_eof()
        assert await received(sock) == b"question"
        assert not relaying.done()
        sock.send(b"answer")
        sock.shutdown(socket.SHUT_WR)
        assert await read_all(inner) == b"answer"
        await relaying

    relayed(test)


def test_the_server_may_end_first() -> None:
    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        sock.send(b"news")
        sock.shutdown(socket.SHUT_WR)
        assert await read_all(inner) == b"news"
        await inner.write(b"thanks")
        inner.write_eof()
        assert await received(sock) == b"thanks"
        await relaying

    relayed(test)


@pytest.mark.parametrize("is_server", [False, True])
def test_a_break_of_one_side_breaks_the_other(is_server: bool) -> None:
    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        if is_server:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            sock.close()
            with pytest.raises(ConnectionResetError):
                await inner.read()
        else:
            inner.reset()
            with pytest.raises(ConnectionResetError):
                await received(sock)
        with pytest.raises(ConnectionResetError):
            await relaying

    relayed(test)


def test_a_server_that_is_slow_gets_all_of_a_run_that_has_left() -> None:
    size = 2 * MB

    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        writing = asyncio.ensure_future(inner.write(bytes(size)))
        found = bytearray()
        while not writing.done():
            found += await asyncio.get_running_loop().sock_recv(sock, 65536)
        inner.write_eof()
        await until(lambda: inner.waits_for_end)
        inner.reset()
        await until(lambda: inner.is_finished)
        found += await received(sock)
        assert len(found) == size
        await relaying

    relayed(test)


def test_who_cancels_it_breaks_both_sides() -> None:
    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        await asyncio.sleep(0)
        relaying.cancel()
        with pytest.raises(ConnectionResetError):
            await inner.read()
        with pytest.raises(ConnectionResetError):
            await received(sock)

    relayed(test)


def test_a_run_that_does_not_read_stops_the_server() -> None:
    async def test(
        inner: GateConnection, sock: socket.socket, relaying: "asyncio.Task[None]"
    ) -> None:
        loop = asyncio.get_running_loop()
        sending = asyncio.ensure_future(loop.sock_sendall(sock, bytes(20 * MB)))
        await until(lambda: inner.received == WINDOW)
        for _ in range(100):
            await asyncio.sleep(0)
        assert inner.received == WINDOW
        assert not sending.done()
        sending.cancel()

    relayed(test)
