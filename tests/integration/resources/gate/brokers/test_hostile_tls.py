"""Remote servers that use TLS to keep the worker busy: their run ends with all that it has, others go on."""

import socket
import ssl
import threading
import time

import pytest

from isolane.gate.frames import FrameKind, GateFrame
from resources.gate.brokers import streams, tls_handshake
from resources.gate.brokers.base import Broker
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.postgres import PostgresBroker
from resources.gate.brokers.postgres_login import PostgresLogin
from resources.gate.brokers.postgres_messages import message, startup_packet
from resources.gate.brokers.share import Share
from resources.gate.loop import gate_loop
from tests.integration.resources.gate.brokers.tls_peer import TlsPeer, stale_descriptors
from tests.integration.resources.gate.remote import (
    SECONDS,
    Runtime,
    a_remote,
    a_route,
    a_runtime,
    sockets_to,
)
from tests.tls_certificates import TestAuthority
from tests.waiting import wait_for

HOST = "db.example.com"
STARTUP = startup_packet(0, ((b"user", b"reader"), (b"database", b"shop")))
READY = message(b"R", bytes(4)) + message(b"Z", b"I")


def http(port: int, ca: str, share: Share) -> Broker:
    return HttpBroker(
        HttpLogin(
            scheme="https", host=HOST, port=port, header="Authorization", value="s3cret", ca=ca
        ),
        share,
    )


def postgres(port: int, ca: str, share: Share) -> Broker:
    return PostgresBroker(
        PostgresLogin(
            host=HOST, port=port, user="reader", dbname="shop", password="s3cret",
            sslmode="verify-full", ca=ca, connect_timeout_s=20,
        ),
        share,
    )  # fmt: skip


def upload(port: int) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: 90000000\r\n\r\n"
    return head.encode()


class Deaf:
    """A server that agrees on TLS, reads little, says that it ends when the test wants it, and stays."""

    def __init__(self, context: ssl.SSLContext, *, is_postgres: bool) -> None:
        self._context = context
        self._is_postgres = is_postgres
        self.may_say_end = threading.Event()
        self.has_said_end = threading.Event()
        self.is_over = threading.Event()

    def __call__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        if self._is_postgres:
            sock.recv(8)
            sock.sendall(b"S")
        peer = TlsPeer(sock, self._context)
        peer.shake_hands()
        if self._is_postgres:
            peer.read()
            peer.write(READY)
        self.may_say_end.wait(SECONDS)
        peer.say_end()
        self.has_said_end.set()
        self.is_over.wait(SECONDS)


@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "runtime gone"])
@pytest.mark.parametrize("is_postgres", [True, False], ids=["PostgreSQL", "HTTP"])
def test_a_server_that_ends_and_does_not_read_keeps_nothing(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch, is_postgres: bool, is_reset: bool
) -> None:
    monkeypatch.setattr(streams, "_CLOSE_SECONDS", 1.0)
    serve = Deaf(authority.issue(HOST).server_context(), is_postgres=is_postgres)
    with a_remote(serve) as remote:
        made = (postgres if is_postgres else http)(remote.port, authority.pem, Share())
        with a_runtime(a_route(remote.port, host=HOST, broker=made)) as runtime:
            first = STARTUP if is_postgres else upload(remote.port)
            runtime.dial(1, first)
            runtime.fill(1, len(first))
            assert sockets_to(remote.port) == 1
            serve.may_say_end.set()
            assert serve.has_said_end.wait(SECONDS)
            if is_reset:
                runtime.send(GateFrame(FrameKind.RESET, 1))
                wait_for(lambda: not sockets_to(remote.port), "the worker to let go", 7)
                wait_for(lambda: runtime.records, "a record", SECONDS)
            runtime.channel.close()
            began = time.monotonic()
            runtime.gate.close()
            assert time.monotonic() - began < 2.5
            assert len(runtime.records) == 1
            wait_for(lambda: not sockets_to(remote.port), "the worker to let go", SECONDS)
        serve.is_over.set()
    assert stale_descriptors(gate_loop()._loop) == []
    with a_runtime(a_route(1)) as other:  # whose channel has the numbers that are free now
        other.send(GateFrame(FrameKind.LISTENING))
        assert other.gate.wait_until_open(SECONDS)


def test_what_comes_before_tls_is_no_answer_within_it(authority: TestAuthority) -> None:
    def serve(sock: socket.socket) -> None:
        sock.recv(8)
        sock.sendall(b"S" + READY)
        while sock.recv(4096):
            pass

    with a_remote(serve) as remote:
        broker = postgres(remote.port, authority.pem, Share())
        with a_runtime(a_route(remote.port, host=HOST, broker=broker)) as runtime:
            runtime.dial(1, STARTUP)
            runtime.wait_for_frame(FrameKind.END, 1)
            said = runtime.bytes_of(1)
    assert said.startswith(b"E")
    assert b"TLS was not agreed on" in said


class Verifying:
    """A step of a handshake that takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.may_go_on = threading.Event()
        self._step = tls_handshake._step
        monkeypatch.setattr(tls_handshake, "_step", self)

    def __call__(self, tls: ssl.SSLObject) -> bool:
        self.begun += 1
        self.may_go_on.wait(20)
        return self._step(tls)


def test_certificates_that_take_long_hold_up_their_run_only(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifying, share = Verifying(monkeypatch), Share()
    with a_remote() as remote:
        get = f"GET / HTTP/1.1\r\nHost: {HOST}:{remote.port}\r\n\r\n".encode()
        routes = [
            a_route(remote.port, host=HOST, broker=http(remote.port, authority.pem, share))
            for _ in range(2)
        ]
        with a_runtime(*routes) as runtime, a_runtime(a_route(remote.port)) as other:
            for number in range(1, 11):
                runtime.dial(number, get, route=number % 2)
            wait_for(lambda: verifying.begun, "a handshake")
            other.dial(1, b"hello")
            wait_for(lambda: other.bytes_of(1) == b"hello", "the other run goes on", SECONDS)
            assert verifying.begun == 1  # of two definitions
            _leave(runtime, 1)
            assert verifying.begun == 1  # the thread that nobody waits for has the share
            verifying.may_go_on.set()
            wait_for(lambda: verifying.begun > 1, "another handshake", SECONDS)


def _leave(runtime: Runtime, number: int) -> None:
    runtime.send(GateFrame(FrameKind.RESET, number))
    wait_for(lambda: runtime.records, "it is over", SECONDS)
