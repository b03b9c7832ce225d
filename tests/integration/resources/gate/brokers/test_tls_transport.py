"""resources.gate.brokers.transport, tls_handshake and tls_transport, over a pair of sockets."""

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpcore
import pytest

from resources.gate.brokers import streams as streams_module
from resources.gate.brokers import tls_handshake
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.loop_turns import LoopTurns
from resources.gate.brokers.remote_stream import RemoteStream
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import Proof, opened, tls_context
from resources.gate.brokers.tls_handshake import BYTES_MAX, TlsClient, TlsSession
from resources.gate.brokers.tls_transport import TlsTransport
from resources.gate.brokers.transport import open_transport
from tests.integration.resources.gate.brokers.tls_peer import TlsPeer, stale_descriptors
from tests.tls_certificates import TestAuthority

HOST = "db.example.com"


def uncounted(_: int) -> None:
    """Count nothing."""


MB = 1024 * 1024
Serve = Callable[[TlsPeer], object]


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
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.2)
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
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.2)
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
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.2)
        assert (len(turns.withheld), notes.sizes) == (1, [])
        assert sent < 3 * MB
        turns.give()
        await notes.lost
        assert sum(notes.sizes) == sent

    with Ends(authority, serve) as ends:
        run(read(ends))


def test_no_server_chooses_how_long_a_key_exchange_takes(authority: TestAuthority) -> None:
    login = HttpLogin(
        scheme="https", host=HOST, port=443, header="Authorization", value="x", ca=authority.pem
    )
    ours = HttpBroker(login, Share())._tls
    assert ours is not None
    for context in (ours.context, tls_context(Proof.NAME, authority.pem)):
        names = {one["name"] for one in context.get_ciphers()}
        assert {name for name in names if name.startswith("DHE-")} == set()
        assert names >= {"TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"}


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


# --- handshake
def test_a_handshake_has_few_bytes(authority: TestAuthority, tmp_path: Any) -> None:
    certificate = authority.issue(HOST)
    chain = tmp_path / "chain.pem"
    own = certificate.certfile.read_bytes()
    chain.write_bytes(own * (BYTES_MAX // len(ssl.PEM_cert_to_DER_cert(own.decode())) + 1))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, certificate.keyfile)

    async def shake(ends: Ends) -> None:
        with pytest.raises(ssl.SSLError) as raised:
            await open_transport(ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1)
        assert raised.value.reason == "EXCESSIVE_MESSAGE_SIZE"
        assert f"more than {BYTES_MAX // 1024} KiB" in str(raised.value)

    with Ends(authority, lambda _: None) as ends:
        ends._peer._tls.context = context
        run(shake(ends))


def test_a_server_that_leaves_during_the_handshake_is_an_error(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def shake(ends: Ends) -> None:
        with pytest.raises(ConnectionResetError, match="during the handshake"):
            await open_transport(ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1)

    def leave() -> None:
        peer.sock.recv(10)
        peer.sock.shutdown(socket.SHUT_WR)

    ends = Ends(authority, lambda _: None)
    peer = ends._peer
    monkeypatch.setattr(peer, "shake_hands", leave)
    with ends:
        run(shake(ends))


def test_the_server_is_told_why_it_is_not_trusted(
    authority: TestAuthority, other_authority: TestAuthority
) -> None:
    async def shake(ends: Ends) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await open_transport(ends.ours, Notes(), tls, charge=uncounted, close_seconds=1)

    context = ssl.create_default_context(cadata=other_authority.pem)
    tls = TlsClient(context=context, host=HOST, share=Share())
    with Ends(authority, lambda _: None) as ends:
        run(shake(ends))
    assert "UNKNOWN_CA" in str(ends.error)


def test_a_handshake_that_is_given_up_in_a_thread_leaves_nothing(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_verifying, may_go_on = threading.Event(), threading.Event()

    def step(tls: ssl.SSLObject) -> bool:
        is_verifying.set()
        return may_go_on.wait(10) and before(tls)

    async def give_up(ends: Ends) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await open_transport(
                    ends.ours, Notes(), ends.tls, charge=uncounted, close_seconds=1
                )
        assert is_verifying.is_set()
        assert (ends.ours.fileno(), stale_descriptors(asyncio.get_running_loop())) == (-1, [])
        may_go_on.set()
        assert await ends.tls.share.in_thread(lambda: 7) == 7

    before = tls_handshake._step
    monkeypatch.setattr(tls_handshake, "_step", step)
    with Ends(authority, lambda _: None) as ends:
        run(give_up(ends))


@pytest.mark.parametrize("turns", range(1, 5))
def test_an_opening_that_is_cancelled_leaves_nothing(authority: TestAuthority, turns: int) -> None:
    async def cancel() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            opening = asyncio.create_task(
                open_transport(ours, Notes(), None, charge=uncounted, close_seconds=1)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            if opening.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await opening
            else:
                opening.result().abort()
            await asyncio.sleep(0.01)
            assert (ours.fileno(), stale_descriptors(asyncio.get_running_loop())) == (-1, [])

    run(cancel())
