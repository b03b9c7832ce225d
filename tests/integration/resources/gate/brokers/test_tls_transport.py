"""resources.gate.brokers.tls_transport, over a pair of sockets."""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import httpcore
import pytest

from resources.gate.brokers import streams as streams_module
from resources.gate.brokers.loop_turns import LoopTurns
from resources.gate.brokers.remote_stream import RemoteStream
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import opened
from resources.gate.brokers.tls_handshake import TlsSession
from resources.gate.brokers.tls_transport import TlsTransport
from resources.gate.brokers.transport import open_transport
from tests.integration.resources.gate.brokers.tls_ends import (
    MB,
    Ends,
    Notes,
    run,
    stalled,
    uncounted,
    wait_until_over,
)
from tests.integration.resources.gate.brokers.tls_peer import TlsPeer
from tests.tls_certificates import TestAuthority


# --- data and ends
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_go_both_ways_and_the_ends_are_told(
    authority: TestAuthority, version: ssl.TLSVersion
) -> None:
    sent, heard = os.urandom(3 * MB), bytearray()

    def serve(peer: TlsPeer) -> None:
        while len(heard) < len(sent):
            heard.extend(peer.read())
        for start in range(0, len(sent), 100_000):
            peer.write(sent[start : start + 100_000])
        peer.say_end()
        heard.extend(b"end" if peer.read() == b"" else b"more")

    async def talk(ends: Ends) -> None:
        async with opened(ends.ours, ends.tls, uncounted) as (reader, writer):
            writer.write(sent)
            await writer.drain()
            assert await reader.read(-1) == sent
            assert writer.get_extra_info("ssl_object").version() == version.name.replace("_", ".")

    with Ends(authority, serve) as ends:
        ends.tls.context.maximum_version = version
        run(talk(ends))
    assert (bytes(heard), ends.error) == (sent + b"end", None)


def test_the_server_is_told_of_our_end(authority: TestAuthority) -> None:
    heard: list[bytes] = []

    def serve(peer: TlsPeer) -> None:
        peer.write(b"hello")
        heard.append(peer.read())
        heard.append(peer.read())

    async def leave(ends: Ends) -> None:
        async with opened(ends.ours, ends.tls, uncounted) as (reader, writer):
            assert await reader.readexactly(5) == b"hello"
            writer.write(b"last")

    with Ends(authority, serve) as ends:
        run(leave(ends))
    assert (heard, ends.error) == ([b"last", b""], None)


@pytest.mark.parametrize("is_said", [True, False])
def test_only_an_end_that_the_server_has_said_is_one(
    authority: TestAuthority, is_said: bool
) -> None:
    def serve(peer: TlsPeer) -> None:
        peer.write(b"all or part")
        if is_said:
            peer.say_end()
        peer.sock.shutdown(socket.SHUT_WR)

    async def read(ends: Ends) -> None:
        stream = RemoteStream(lambda _size: None, Share())
        async with ends.transport(stream):
            assert await stream.read(100) == b"all or part"
            if is_said:
                assert await stream.read(100) == b""
            else:
                with pytest.raises(httpcore.ReadError, match="broke it off"):
                    await stream.read(100)
            assert stream.was_left
            await stream.aclose()

    with Ends(authority, serve) as ends:
        run(read(ends))


def test_streams_break_with_a_connection_that_is_cut(authority: TestAuthority) -> None:
    async def read(ends: Ends) -> None:
        async with opened(ends.ours, ends.tls, uncounted) as (reader, _):
            with pytest.raises(ConnectionResetError):
                await reader.read()

    with Ends(authority, lambda peer: peer.sock.shutdown(socket.SHUT_WR)) as ends:
        run(read(ends))


def test_what_is_not_tls_ends_the_connection(authority: TestAuthority) -> None:
    async def read(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes):
            assert isinstance(await notes.lost, ssl.SSLError)
        assert (notes.sizes, notes.ends) == ([4], ["lost"])

    def serve(peer: TlsPeer) -> None:
        peer.write(b"true")
        peer.sock.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))

    with Ends(authority, serve) as ends:
        run(read(ends))


# --- flow
def test_a_server_that_sends_much_is_read_in_turns(authority: TestAuthority) -> None:
    async def read(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes):
            await notes.lost
        assert sum(notes.sizes) == 2 * MB
        assert max(notes.sizes) <= 64 * 1024
        assert notes.ends == ["eof", "lost"]

    def serve(peer: TlsPeer) -> None:
        peer.write(bytes(2 * MB))
        peer.say_end()

    with Ends(authority, serve) as ends:
        run(read(ends))


def test_a_server_waits_while_nobody_reads(authority: TestAuthority) -> None:
    sent = 0

    def serve(peer: TlsPeer) -> None:
        nonlocal sent
        while sent < 8 * MB:
            peer.write(bytes(10_000))
            sent += 10_000
        peer.say_end()

    async def wait(ends: Ends) -> None:
        async with opened(ends.ours, ends.tls, uncounted) as (reader, _):
            await stalled(lambda: sent)
            assert sent < 3 * MB
            got = 0
            while piece := await reader.read(64 * 1024):
                got += len(piece)
            assert got == sent

    with Ends(authority, serve) as ends:
        run(wait(ends))


def test_nothing_comes_while_reading_is_paused(authority: TestAuthority) -> None:
    sent = 0

    def serve(peer: TlsPeer) -> None:
        nonlocal sent
        peer.read()
        while sent < 4 * MB:
            peer.write(bytes(1000))
            sent += 1000
        peer.say_end()

    async def pause(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes) as transport:
            transport.pause_reading()
            transport.write(b"begin")
            await stalled(lambda: sent)
            assert (notes.sizes, sent < 2 * MB) == ([], True)
            transport.resume_reading()
            await notes.lost
        assert sum(notes.sizes) == sent

    with Ends(authority, serve) as ends:
        run(pause(ends))


def test_we_wait_while_a_server_does_not_read(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "_CLOSE_SECONDS", 0.3)

    async def write(ends: Ends) -> None:
        with pytest.raises(TimeoutError):
            async with opened(ends.ours, ends.tls, uncounted) as (_, writer), asyncio.timeout(0.5):
                while True:
                    writer.write(bytes(50_000))
                    assert writer.transport.get_write_buffer_size() < 200_000
                    await writer.drain()

    with Ends(authority, wait_until_over(lambda: ends)) as ends:
        run(write(ends))


class Withheld(LoopTurns):
    """Gives no turn until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.withheld: list[Callable[[], object]] = []
        self._gives = False

    def give(self) -> None:
        self._gives = True
        for action in self.withheld:
            self.call(action)

    def take(self) -> bool:
        return self._gives and super().take()

    def call(self, action: Callable[[], object]) -> None:
        if self._gives:
            super().call(action)
        else:
            self.withheld.append(action)


def test_no_more_is_read_while_a_piece_waits_for_its_turn(authority: TestAuthority) -> None:
    """The tenant's other connections may take all turns for a while; the rest stays with the server."""
    sent = 0

    def serve(peer: TlsPeer) -> None:
        nonlocal sent
        while sent < 8 * MB:
            peer.write(bytes(10_000))
            sent += 10_000
        peer.say_end()

    async def read(ends: Ends) -> None:
        notes, turns = Notes(), Withheld()
        ends.tls.share.turns = turns
        await open_transport(ends.ours, notes, ends.tls, charge=uncounted, close_seconds=1)
        await stalled(lambda: sent)
        assert (len(turns.withheld), notes.sizes) == (1, [])
        assert sent < 3 * MB
        turns.give()
        await notes.lost
        assert sum(notes.sizes) == sent

    with Ends(authority, serve) as ends:
        run(read(ends))


def test_tiny_records_are_decrypted_in_small_pieces_and_counted_whole(
    authority: TestAuthority,
) -> None:
    """Each takes the loop some time, whatever it carries."""
    records, around = 3000, 22  # bytes of a record around its data, in TLS 1.3
    charged = list[int]()

    def serve(peer: TlsPeer) -> None:
        for _ in range(records):
            peer.write(b"x")
        peer.say_end()

    async def read(ends: Ends) -> None:
        notes = Notes()
        await open_transport(ends.ours, notes, ends.tls, charge=charged.append, close_seconds=1)
        await notes.lost
        assert sum(notes.sizes) == records
        assert max(notes.sizes) <= 1024 // around
        assert (
            records * around <= sum(charged) < records * around + 2000
        )  # with tickets, and the end

    with Ends(authority, serve) as ends:
        run(read(ends))


def test_a_server_that_wants_answers_without_end_is_given_up(authority: TestAuthority) -> None:
    class Asking:
        """TLS in which each record calls for an answer, as a change of keys does."""

        def read(self, _: int) -> bytes:
            outgoing.write(bytes(10_000))
            raise ssl.SSLWantReadError

    async def answer() -> None:
        ours, theirs = socket.socketpair()
        session: Any = TlsSession(Asking(), ssl.MemoryBIO(), outgoing)  # type: ignore[arg-type]
        notes = Notes()
        transport = TlsTransport(
            session, notes, turns=LoopTurns(), charge=uncounted, close_seconds=1
        )
        with theirs:
            await asyncio.get_running_loop().create_connection(lambda: transport, sock=ours)
            while not notes.lost.done():
                await asyncio.get_running_loop().sock_sendall(theirs, b"x")
                await asyncio.sleep(0)
            assert isinstance(await notes.lost, ConnectionAbortedError)
        await asyncio.sleep(0)

    outgoing = ssl.MemoryBIO()
    run(answer())


def test_a_server_that_sends_tls_and_no_data_is_given_up(authority: TestAuthority) -> None:
    """Tickets stand for changes of keys, which Python's own TLS cannot make."""

    async def receive(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes):
            assert isinstance(await notes.lost, ConnectionAbortedError)
        assert notes.sizes == []

    with Ends(authority, wait_until_over(lambda: ends), tickets=1000) as ends:
        run(receive(ends))


def test_a_server_may_send_its_data_byte_by_byte(authority: TestAuthority) -> None:
    def drop(peer: TlsPeer) -> None:
        for _ in range(5000):
            peer.write(b"x")
        peer.say_end()

    async def receive(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes):
            assert await notes.lost is None
        assert sum(notes.sizes) == 5000

    with Ends(authority, drop) as ends:
        run(receive(ends))


# --- closing
@pytest.mark.parametrize("says_end", [True, False])
@pytest.mark.parametrize(
    "calls", [["close"], ["abort"], ["close", "close", "abort"], ["abort", "close", "abort"]]
)
def test_a_server_that_does_not_read_cannot_keep_it_open(
    authority: TestAuthority, says_end: bool, calls: list[str]
) -> None:
    def serve(peer: TlsPeer) -> None:
        if says_end:
            peer.say_end()
        has_said.set()
        ends.is_over.wait(10)

    async def leave(ends: Ends) -> None:
        notes = Notes()
        async with ends.transport(notes) as transport:
            transport.write(bytes(MB))
            assert transport.get_write_buffer_size()
            await asyncio.to_thread(has_said.wait, 10)
            await asyncio.sleep(0.05 if says_end else 0)  # it is read
            assert ("eof" in notes.ends) is says_end
            for call in calls:
                getattr(transport, call)()
                assert transport.is_closing()
            await notes.lost
            transport.close()
            transport.abort()
            transport.write(b"too late")
            await asyncio.sleep(0.4)  # longer than the bound
        assert notes.ends.count("lost") == 1

    has_said = threading.Event()
    with Ends(authority, serve) as ends:
        run(leave(ends))


@pytest.mark.parametrize("has_unsent", [True, False])
def test_a_stream_of_http_closes_at_once(authority: TestAuthority, has_unsent: bool) -> None:
    async def leave(ends: Ends) -> None:
        stream = RemoteStream(lambda _size: None, Share())
        async with ends.transport(stream):
            if has_unsent:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await stream.write(bytes(MB))
            async with asyncio.timeout(0.2):
                await stream.aclose()
            await stream.aclose()

    with Ends(authority, wait_until_over(lambda: ends)) as ends:
        run(leave(ends))
