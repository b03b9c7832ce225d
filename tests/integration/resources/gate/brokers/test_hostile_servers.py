"""Remote servers that want to keep the worker busy: the gates of other runs go on."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from isolane.gate.frames import FrameKind, GateFrame
from resources.gate.brokers import remote_stream
from resources.gate.brokers.base import Broker
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.postgres import PostgresBroker
from resources.gate.brokers.postgres_authentication import Authentication
from resources.gate.brokers.postgres_login import PostgresLogin
from resources.gate.brokers.postgres_messages import message, startup_packet
from resources.gate.brokers.redis import RedisBroker, RedisLogin
from resources.gate.brokers.share import Share
from resources.gate.loop import gate_loop
from resources.gate.record import ConnectionReason
from tests.integration.resources.gate.remote import (
    Remote,
    Runtime,
    Serve,
    a_remote,
    a_route,
    a_runtime,
    sockets_to,
)
from tests.scram_server import ScramServer
from tests.waiting import wait_for

HOST = "db.example.com"
STARTUP = startup_packet(0, ((b"user", b"reader"), (b"database", b"shop")))
PASSWORD = "pass-and-secret"
_AT_ONCE = 10  # more than the loop's own threads


def http(port: int) -> Broker:
    login = HttpLogin(scheme="http", host=HOST, port=port, header="Authorization", value="s3cret")
    return HttpBroker(login, Share())


def postgres(port: int) -> Broker:
    return PostgresBroker(
        PostgresLogin(
            host=HOST, port=port, user="reader", dbname="shop", password="s3cret", sslmode="disable",
            ca="", connect_timeout_s=20,
        ),
        Share(),
    )  # fmt: skip


@contextlib.contextmanager
def a_flood(first: bytes, rest: bytes) -> Iterator[Remote]:
    """Run a server that sends this, and that again and again."""

    def pour(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(first)
        while True:
            sock.sendall(rest)

    with a_remote(pour) as remote:
        yield remote


def request(port: int) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode()


def most_delay(until: threading.Event) -> float:
    """Return for how long the loop of all gates was held up at most."""

    async def look() -> float:
        loop, most = asyncio.get_running_loop(), 0.0
        while not until.is_set():
            before = loop.time()
            await asyncio.sleep(0.001)
            most = max(most, loop.time() - before)
        return most

    return gate_loop().submit(look()).result(30)


@pytest.mark.parametrize(
    ("first", "rest", "reason"),
    [
        (b"", b"HTTP/1.1 100 Go\r\n\r\n" * 5000, ConnectionReason.PROTOCOL),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1;" + b"e" * 60_000 + b"\r\nx\r\n",
            ConnectionReason.SERVER_RESET,
        ),
    ],
    ids=["answers that are none", "chunks of extensions"],
)
def test_http_that_sends_much_for_little_is_given_up(
    monkeypatch: pytest.MonkeyPatch, first: bytes, rest: bytes, reason: ConnectionReason
) -> None:
    monkeypatch.setattr(remote_stream, "OVERHEAD_MAX", 100_000)
    with a_flood(first, rest) as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=http(remote.port))) as runtime:
            runtime.dial(1, request(remote.port))
            runtime.wait_for_frame(FrameKind.END, 1)
            runtime.send(GateFrame(FrameKind.END, 1))
            runtime.wait_for_reasons(reason)


def test_tiny_chunks_do_not_hold_up_the_loop() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    is_over = threading.Event()
    with a_flood(head, b"1\r\nx\r\n" * 50_000) as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=http(remote.port))) as runtime:
            runtime.dial(1, request(remote.port))
            timer = threading.Timer(0.5, is_over.set)
            timer.start()
            # Without turns it was seconds; the machine itself may take tenths.
            assert most_delay(is_over) < 1.0
            assert runtime.bytes_of(1).startswith(b"HTTP/1.1 200")


HEADERS = b"".join(b"a:\r\n" for _ in range(7_000))
NAMED = b"Connection: " + b"a," * 25_000 + b"\r\n"


@pytest.mark.parametrize("head", [HEADERS, NAMED, HEADERS + NAMED[:30_000] + b"\r\n"])
def test_an_answer_of_many_headers_is_given_up_and_does_not_hold_up_the_loop(head: bytes) -> None:
    is_over = threading.Event()
    with a_flood(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", b"x") as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=http(remote.port))) as runtime:
            runtime.dial(1, request(remote.port))
            timer = threading.Timer(0.5, is_over.set)
            timer.start()
            assert most_delay(is_over) < 1.0  # it was 5 s with both
            runtime.wait_for_frame(FrameKind.END, 1)
            assert runtime.bytes_of(1).startswith(b"HTTP/1.1 502")
            runtime.send(GateFrame(FrameKind.END, 1))
            runtime.wait_for_reasons(ConnectionReason.PROTOCOL)


@pytest.mark.parametrize("head", [HEADERS, NAMED[:30_000] + b"\r\n"])
def test_a_request_of_many_headers_reaches_nothing_and_does_not_hold_up_the_loop(
    head: bytes,
) -> None:
    is_over = threading.Event()
    with a_remote() as remote:
        route = a_route(remote.port, host=HOST, broker=http(remote.port))
        with a_runtime(route) as runtime:
            for number in range(1, 9):
                runtime.dial(number, request(remote.port)[:-2] + head + b"\r\n")
            timer = threading.Timer(0.5, is_over.set)
            timer.start()
            assert most_delay(is_over) < 1.0  # it was 13 s in all
            for number in range(1, 9):
                runtime.wait_for_frame(FrameKind.END, number)
                assert runtime.bytes_of(number).startswith(b"HTTP/1.1 431")
        assert remote.accepted == []


TRAILED = b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + HEADERS[:30_000] + b"\r\n"


def test_trailers_of_many_lines_are_refused_to_a_run() -> None:
    with a_remote() as remote:
        route = a_route(remote.port, host=HOST, broker=http(remote.port))
        with a_runtime(route) as runtime:
            runtime.dial(1, b"POST" + request(remote.port)[3:-2] + TRAILED)
            runtime.wait_for_frame(FrameKind.END, 1)
            assert runtime.bytes_of(1).startswith(b"HTTP/1.1 431")
            runtime.send(GateFrame(FrameKind.END, 1))
            runtime.wait_for_reasons(ConnectionReason.PROTOCOL)


def test_trailers_of_many_lines_end_an_answer() -> None:
    with a_flood(b"HTTP/1.1 200 OK\r\n" + TRAILED, b"x") as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=http(remote.port))) as runtime:
            runtime.dial(1, request(remote.port))
            runtime.wait_for_frame(FrameKind.END, 1)
            assert not runtime.bytes_of(1).endswith(b"0\r\n\r\n")  # it is not whole
            runtime.send(GateFrame(FrameKind.END, 1))
            runtime.wait_for_reasons(ConnectionReason.SERVER_RESET)


def test_what_a_server_sends_beside_its_answers_counts_for_the_run() -> None:
    def answer(sock: socket.socket) -> None:
        while sock.recv(4096):
            interim = b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 900 + b"\r\n\r\n"
            sock.sendall(interim * 300 + b"HTTP/1.1 204 No Content\r\n\r\n")

    with a_remote(answer) as remote:
        route = a_route(remote.port, host=HOST, broker=http(remote.port))
        with a_runtime(route, network_mb=1) as runtime:
            runtime.dial(1)
            for number in range(1, 5):  # each is a quarter of it, and there is the server's own
                assert runtime.records == []
                runtime.send(GateFrame(FrameKind.DATA, 1, 0, request(remote.port)))
                wait_for(
                    lambda: runtime.records or runtime.bytes_of(1).count(b" 204 ") == number,  # noqa: B023 - waited for here
                    "an answer or the end",
                )
            (record,) = runtime.wait_for_reasons(ConnectionReason.BYTES)
            assert record.received < 1000


def test_what_went_through_is_recorded_though_the_server_is_gone_for_the_next_request() -> None:
    body = bytes(100_000)

    def answer_once(sock: socket.socket) -> None:
        got = b""
        while not got.endswith(body):
            got += sock.recv(65536)
        remote.close_listener()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        sock.close()

    with a_remote(answer_once) as remote:
        route = a_route(remote.port, host=HOST, broker=http(remote.port))
        with a_runtime(route) as runtime:
            head = request(remote.port).replace(b"GET", b"POST")[:-2]
            runtime.dial(1, head + b"Content-Length: %d\r\n\r\n" % len(body))
            for _ in range(2):
                runtime.send(GateFrame(FrameKind.DATA, 1, 0, body[:50_000]))
            wait_for(lambda: b"200 OK" in runtime.bytes_of(1), "the first answer")
            runtime.send(GateFrame(FrameKind.DATA, 1, 0, request(remote.port)))
            wait_for(lambda: b" 502 " in runtime.bytes_of(1), "the second answer")
            runtime.send(GateFrame(FrameKind.END, 1))
            (record,) = runtime.wait_for_reasons(ConnectionReason.UNREACHABLE)
            assert not record.is_refusal
            assert record.sent > len(body)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", message(b"v", struct.pack("!II", 3 << 16, 0))),
        (message(b"R", bytes(4)), message(b"N", b"")),
    ],
    ids=["versions", "notices"],
)
def test_a_login_has_few_messages(first: bytes, again: bytes) -> None:
    with a_flood(first, again * 1000) as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=postgres(remote.port))) as runtime:
            runtime.dial(1, STARTUP)
            runtime.wait_for_frame(FrameKind.END, 1)
            assert b"does not speak the protocol" in runtime.bytes_of(1)


def ask_for_proofs(number: int) -> Serve:
    """Return a server that asks so many times for the one proof."""

    def serve(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(message(b"R", struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0"))
        first = sock.recv(4096).partition(b"n,,")
        scram = ScramServer(b"s3cret", header=first[1])
        asked = scram.first(first[1] + first[2])
        sock.sendall(message(b"R", struct.pack("!I", 11) + asked) * number)
        while sock.recv(4096):
            pass

    return serve


def test_a_proof_is_given_once() -> None:
    with a_remote(ask_for_proofs(2)) as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=postgres(remote.port))) as runtime:
            runtime.dial(1, STARTUP)
            runtime.wait_for_frame(FrameKind.END, 1)
            assert b"asks for the same proof twice" in runtime.bytes_of(1)


def test_proofs_that_take_long_keep_no_thread_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, may_go_on = [], threading.Event()

    def answer(_self: Authentication, request: int, _data: bytes) -> bytes:
        asked.append(request)
        may_go_on.wait(20)
        return b""

    monkeypatch.setattr(Authentication, "answer", answer)

    async def use_a_thread() -> bool:
        return await asyncio.to_thread(lambda: True)

    with a_remote(ask_for_proofs(1)) as remote:
        mine = a_route(remote.port, host=HOST, broker=postgres(remote.port))
        others = a_route(remote.port, host=HOST, broker=postgres(remote.port))
        with a_runtime(mine) as runtime, a_runtime(others) as other:
            _dial_all(runtime)
            wait_for(lambda: asked, "a login to hash")
            other.dial(1, STARTUP)
            wait_for(lambda: len(asked) == 2, "the other run's login")  # another thread is left
            assert gate_loop().submit(use_a_thread()).result(10)
            may_go_on.set()


def _dial_all(runtime: Runtime) -> None:
    for number in range(1, _AT_ONCE + 1):
        runtime.dial(number, STARTUP)


def test_a_server_that_reads_nothing_keeps_no_connection_after_the_run() -> None:
    is_over = threading.Event()

    def wait(_: socket.socket) -> None:
        is_over.wait(20)

    with a_remote(wait) as remote:
        with a_runtime(a_route(remote.port, host=HOST, broker=http(remote.port))) as runtime:
            runtime.dial(1, b"\x16\x03\x01")  # as TLS begins, so that it is tunnelled
            runtime.fill(1, 3)
            assert sockets_to(remote.port) == 1
        wait_for(lambda: not sockets_to(remote.port), "the worker to let go", 10)
        is_over.set()


def test_a_run_cache_that_quotes_the_login_tells_no_password() -> None:
    def quote(sock: socket.socket) -> None:
        words = sock.recv(4096).decode().split("\r\n")
        assert PASSWORD in words
        sock.sendall(f"-ERR unknown command 'AUTH', with args {words}\r\n".encode())

    with a_remote(quote) as remote:
        login = RedisLogin(host=HOST, port=remote.port, username="u", password=PASSWORD, tls=False)
        with a_runtime(a_route(remote.port, broker=RedisBroker(login, Share()))) as runtime:
            runtime.dial(1)
            runtime.wait_for_frame(FrameKind.END, 1)
            said = runtime.bytes_of(1)
    assert said == b"-ERR it quotes the login\r\n"
