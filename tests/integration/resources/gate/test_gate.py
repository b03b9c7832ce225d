"""resources.gate.gate: a real gate, real remote servers, and a runtime in the test's hands."""

import contextlib
import errno
import gc
import logging
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from isolane.gate.frames import CHUNK, WINDOW, FrameKind, GateFrame
from resources.gate import gate as gate_module
from resources.gate import open_connections
from resources.gate.brokers.share import share_of
from resources.gate.record import ConnectionReason
from tests.integration.resources.gate.remote import (
    SECONDS,
    Broken,
    Remote,
    Runtime,
    a_full_server,
    a_remote,
    a_route,
    a_runtime,
    a_sink,
)
from tests.requirements import give_up
from tests.waiting import wait_for

MB = 1024 * 1024
DATA, END, RESET, CREDIT, DIAL = (
    FrameKind.DATA, FrameKind.END, FrameKind.RESET, FrameKind.CREDIT, FrameKind.DIAL,
)  # fmt: skip
CLOSED, RUN_ENDED = ConnectionReason.CLOSED, ConnectionReason.RUN_ENDED
RESETS = struct.pack("ii", 1, 0)


@pytest.fixture
def remote() -> Iterator[Remote]:
    """A server that sends back what comes."""
    with a_remote() as server:
        yield server


@pytest.fixture
def runtime(remote: Remote) -> Iterator[Runtime]:
    """A runtime with a route to it."""
    with a_runtime(a_route(remote.port), connections=4) as held:
        yield held


# --- in order
def test_a_connection_is_carried_and_recorded(runtime: Runtime, remote: Remote) -> None:
    runtime.dial(1, b"hello", ends=True)
    runtime.wait_for_frame(END, 1)
    assert runtime.bytes_of(1) == b"hello"
    (record,) = runtime.wait_for_reasons(CLOSED)
    assert (record.definition, record.host, record.port) == ("api", "api.example.com", remote.port)
    assert (record.sent, record.received, record.is_refusal) == (5, 5, False)
    assert 0 < record.seconds < SECONDS


def test_a_server_at_an_address_of_ipv6_is_reached() -> None:
    with contextlib.ExitStack() as stack:
        try:
            remote = stack.enter_context(a_remote(address="::1"))
        except OSError as error:
            give_up(f"this machine has no address of IPv6: {error}")
        runtime = stack.enter_context(a_runtime(a_route(remote.port, address="::1")))
        runtime.dial(1, b"hello", ends=True)
        runtime.wait_for_frame(END, 1)
        assert runtime.bytes_of(1) == b"hello"


def test_bytes_that_were_ended_in_order_are_delivered_though_the_channel_ends(
    remote: Remote,
) -> None:
    sent = bytes(range(256)) * 200
    for _ in range(20):
        with a_runtime(a_route(remote.port)) as runtime:
            runtime.dial(1)
            for start in range(0, len(sent), CHUNK):
                runtime.send(GateFrame(DATA, 1, 0, sent[start : start + CHUNK]))
            runtime.send(GateFrame(END, 1))
            runtime.channel.close()
            runtime.gate.close()  # at once: the rest may still be in the pipe
            (record,) = runtime.wait_for_reasons(CLOSED)
            assert record.sent == len(sent)


def test_a_connection_that_is_open_when_the_runtime_ends_is_broken_off() -> None:
    with a_sink() as remote, a_runtime(a_route(remote.port)) as runtime:
        runtime.dial(1, b"half a sen")
        wait_for(lambda: remote.got, "bytes")
        runtime.channel.close()
        wait_for(lambda: remote.ends, "an end")
        assert remote.ends == ["ConnectionResetError"]
        (record,) = runtime.wait_for_reasons(RUN_ENDED)
        assert (record.sent, record.is_refusal) == (10, False)


def test_a_flush_is_answered_or_given_up(runtime: Runtime) -> None:
    assert not runtime.gate.flush(0.01)
    runtime.wait_for_frame(FrameKind.FLUSH, 0)
    runtime.send(GateFrame(FrameKind.FLUSHED))
    assert runtime.gate.flush(SECONDS)


def test_a_runtime_that_has_ended_need_not_be_waited_for(runtime: Runtime) -> None:
    assert not runtime.gate.wait_until_open(0)
    runtime.channel.close()
    assert runtime.gate.wait_until_open(SECONDS)
    assert runtime.gate.flush(SECONDS)


def test_listening_opens_it(runtime: Runtime) -> None:
    runtime.send(GateFrame(FrameKind.LISTENING))
    assert runtime.gate.wait_until_open(SECONDS)


# --- the remote server
def test_a_server_that_does_not_accept_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with caplog.at_level(logging.INFO), a_runtime(a_route(port)) as runtime:
        runtime.dial(1)
        runtime.wait_for_frame(RESET, 1)
        (record,) = runtime.wait_for_reasons(ConnectionReason.UNREACHABLE)
        assert record.is_refusal
    assert f"api.example.com:{port} cannot be reached: " in caplog.text


def test_a_worker_without_descriptors_says_so(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_socket(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    with caplog.at_level(logging.INFO), monkeypatch.context() as patched:
        patched.setattr(socket, "socket", no_socket)
        runtime.dial(1)
        runtime.wait_for_reasons(ConnectionReason.UNREACHABLE)
    assert "Too many open files" in caplog.text


def test_a_server_that_breaks_off_breaks_off_the_run_and_is_named() -> None:
    def break_off(sock: socket.socket) -> None:
        sock.sendall(b"half")
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        sock.close()

    with a_remote(break_off) as remote, a_runtime(a_route(remote.port)) as runtime:
        runtime.dial(1, b"x")
        runtime.wait_for_frame(RESET, 1)
        runtime.wait_for_reasons(ConnectionReason.SERVER_RESET)


def test_once_the_run_has_ended_it_is_not_the_servers_fault() -> None:
    def break_off(sock: socket.socket) -> None:
        while sock.recv(100):
            pass
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        sock.close()

    with a_remote(break_off) as remote, a_runtime(a_route(remote.port)) as runtime:
        runtime.dial(1, b"quit", ends=True)
        runtime.wait_for_frame(RESET, 1)
        (record,) = runtime.wait_for_reasons(ConnectionReason.RESET)
        assert not record.is_fault


def test_an_address_is_checked_at_every_connection(
    remote: Remote, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RESOURCE_NETWORKS = []
    caplog.set_level(logging.INFO)
    with a_runtime(a_route(remote.port, is_platforms=False)) as runtime:
        runtime.dial(1)
        runtime.wait_for_frame(RESET, 1)
        (record,) = runtime.wait_for_reasons(ConnectionReason.ADDRESS_REFUSED)
        assert record.is_refusal
    assert remote.accepted == []
    (line,) = caplog.messages  # which the gate bounds
    assert "is not allowed for a resource" in line
    assert line.endswith("(it is a loopback address, in no network of ISOLANE_RESOURCE_NETWORKS)")


def test_a_server_that_never_reads_keeps_nothing_of_the_worker() -> None:
    def shut(sock: socket.socket) -> None:
        sock.shutdown(socket.SHUT_WR)

    with a_remote(shut) as remote, a_runtime(a_route(remote.port), idle_seconds=1) as runtime:
        runtime.dial(1)
        sent = 0
        while (allowed := WINDOW + credit_of(runtime, 1) - sent) > 0:  # as much as fits
            for _ in range(allowed // CHUNK):
                runtime.send(GateFrame(DATA, 1, 0, bytes(CHUNK)))
                sent += CHUNK
            if allowed < CHUNK:
                break
        runtime.send(GateFrame(END, 1))
        runtime.wait_for_reasons(ConnectionReason.IDLE)
        wait_for(lambda: not runtime.gate._dialled, "nothing is left")


def credit_of(runtime: Runtime, number: int) -> int:
    """Return the credit that came, once none comes any more."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.02:
        if (found := given(runtime, number)) != seen:
            seen, since = found, time.monotonic()
        time.sleep(0.005)
    return seen


def test_a_fault_in_a_broker_ends_its_connection_only(
    remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    broken = a_route(remote.port, broker=Broken())
    with a_runtime(broken, a_route(remote.port, definition="other")) as runtime:
        runtime.dial(1)
        runtime.dial(2, b"hello", route=1)
        runtime.wait_for_frame(RESET, 1)
        wait_for(lambda: runtime.bytes_of(2) == b"hello", "the other one goes on")
        runtime.wait_for_reasons(ConnectionReason.PROTOCOL)
        assert not runtime.faults
    assert "a connection was not served" in caplog.text


def test_a_listener_that_fails_ends_nothing(
    remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    with a_runtime(a_route(remote.port)) as runtime:
        runtime.gate._on_connection = lambda record: 1 // 0  # type: ignore[assignment]  # fails
        runtime.send(GateFrame(FrameKind.REFUSED_NAME, data=b"evil.example.com"))
        runtime.dial(1, b"hello", ends=True)
        runtime.wait_for_frame(END, 1)
        assert runtime.bytes_of(1) == b"hello"
        wait_for(lambda: caplog.text.count("a connection was not recorded") == 2, "two faults")


# --- limits
def test_no_more_connections_than_the_limit(
    runtime: Runtime, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", 0.2)
    for number in range(1, 20):
        runtime.dial(number, b"x")
    for number in range(5, 20):
        runtime.wait_for_frame(RESET, number)
    for number in range(1, 5):
        wait_for(lambda number=number: runtime.bytes_of(number), "the first ones are served")  # type: ignore[misc]
    assert set(runtime.reasons) == {ConnectionReason.CONNECTIONS}
    assert all(record.is_refusal for record in runtime.records)
    assert (len(runtime.records), len(remote.accepted)) == (15, 4)
    runtime.send(GateFrame(END, 1))
    runtime.wait_for_frame(END, 1)
    runtime.dial(20, b"again")
    wait_for(lambda: runtime.bytes_of(20) == b"again", "a place that is free again")


def test_a_connection_beyond_the_limit_is_served_when_another_one_ends(
    runtime: Runtime, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", SECONDS)
    for number in range(1, 6):
        runtime.dial(number, b"hello")
    wait_for(lambda: all(runtime.bytes_of(number) for number in range(1, 5)), "four are served")
    assert len(remote.accepted) == 4
    runtime.send(GateFrame(END, 2))
    wait_for(lambda: runtime.bytes_of(5) == b"hello", "the fifth one is served")
    assert (runtime.reasons, len(remote.accepted)) == ([CLOSED], 5)


def test_a_connection_that_the_run_gives_up_while_it_waits_met_no_limit(runtime: Runtime) -> None:
    for number in range(1, 6):
        runtime.dial(number, b"x")
    wait_for(lambda: all(runtime.bytes_of(number) for number in range(1, 5)), "four are served")
    runtime.send(GateFrame(RESET, 5))
    (record,) = runtime.wait_for_reasons(ConnectionReason.RESET)
    assert not record.is_refusal


def test_a_connection_that_waits_for_its_turn_is_not_idle(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", 2.0)
    route = a_route(remote.port)
    with a_runtime(route, connections=1, idle_seconds=1) as runtime:
        runtime.dial(1, b"hello")
        runtime.dial(2, b"hello")
        wait_for(lambda: runtime.reasons, "the first one to be idle")
        wait_for(lambda: runtime.bytes_of(2) == b"hello", "the second one is served")
        assert runtime.reasons == [ConnectionReason.IDLE]


def test_runs_of_one_tenant_have_one_pace(remote: Remote) -> None:
    """Else many runs would send what one of them may not; also those without a broker."""
    with a_runtime(a_route(remote.port), share=share_of(7)) as runtime:
        gc.collect()
        pace = share_of(7).pace  # of another run, while nothing but the gate has the tenant's share
        runtime.dial(1, b"x")
        wait_for(lambda: runtime.bytes_of(1), "it is served")
        assert pace.pause(0, 0, time.monotonic()) == 0
        pace.pause(15_000, 0, time.monotonic())  # by another run of the tenant
        runtime.send(GateFrame(DATA, 1, 0, b"y"))
        began = time.monotonic()
        wait_for(lambda: runtime.bytes_of(1) == b"xy", "what was read before is served")
        runtime.send(GateFrame(DATA, 1, 0, b"z"))
        wait_for(lambda: runtime.bytes_of(1) == b"xyz", "it is served again")
        assert time.monotonic() - began > 0.5


def test_a_run_carries_no_more_than_its_limit() -> None:
    with a_sink() as remote, a_runtime(a_route(remote.port), network_mb=1) as runtime:
        runtime.dial(1)
        sent = 0
        while sent <= MB:
            if sent + CHUNK <= WINDOW + given(runtime, 1):
                runtime.send(GateFrame(DATA, 1, 0, bytes(CHUNK)))
                sent += CHUNK
        runtime.wait_for_frame(RESET, 1)
        (record,) = runtime.wait_for_reasons(ConnectionReason.BYTES)
        assert MB < record.sent <= MB + CHUNK
        runtime.dial(2)
        runtime.wait_for_frame(RESET, 2)
        records = runtime.wait_for_reasons(ConnectionReason.BYTES, ConnectionReason.BYTES)
        assert [record.is_refusal for record in records] == [False, True]
        assert not runtime.faults


def given(runtime: Runtime, number: int) -> int:
    """Return the credit that came."""
    return sum(each.number for each in runtime.receive() if (each[0], each[1]) == (CREDIT, number))


def test_an_idle_connection_is_ended_and_a_busy_one_is_not(remote: Remote) -> None:
    with a_runtime(a_route(remote.port), idle_seconds=1) as runtime:
        runtime.dial(1, b"x")
        runtime.dial(2)
        sent = 0

        def is_over() -> bool:
            nonlocal sent
            runtime.send(GateFrame(DATA, 2, 0, b"busy"))
            sent += 4
            return bool(runtime.records)

        wait_for(is_over, "the idle one ends", SECONDS)
        runtime.wait_for_frame(RESET, 1)
        (record,) = runtime.wait_for_reasons(ConnectionReason.IDLE)
        assert record.sent == 1
        wait_for(lambda: len(runtime.bytes_of(2)) == sent, "the busy one goes on")


# --- its end
def test_a_gate_may_be_closed_while_it_dials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_CLOSE_SECONDS", 0.1)
    with a_full_server() as port, a_runtime(a_route(port)) as runtime:
        runtime.dial(1)
        runtime.dial(2, b"last words", ends=True)
        wait_for(lambda: len(runtime.gate._dialled) == 2, "dials")
        began = time.monotonic()
        runtime.gate.close()
        assert time.monotonic() - began < 1
        runtime.wait_for_reasons(RUN_ENDED, RUN_ENDED)
        assert not runtime.gate._dialled


def test_a_gate_that_never_began_closes() -> None:
    runtime = Runtime()
    runtime.gate.close()
    runtime.gate.close()
    assert runtime.channel.receive(1000)  # its routes
    assert runtime.channel.receive(1) == b""
    runtime.channel.close()


def test_two_tenants_gates_share_the_loop_and_nothing_else() -> None:
    with a_remote() as ours, a_remote() as theirs:
        first = a_runtime(a_route(ours.port, host="a.example.com", definition="a"))
        second = a_runtime(a_route(theirs.port, host="b.example.com", definition="b"))
        with first as acme, second as globex:
            acme.dial(1, b"of acme", ends=True)
            globex.dial(1, b"of globex", ends=True)
            acme.wait_for_frame(END, 1)
            globex.wait_for_frame(END, 1)
            assert (acme.bytes_of(1), globex.bytes_of(1)) == (b"of acme", b"of globex")
            acme.send(GateFrame(DIAL, 0, 0))
            acme.wait_for_fault()
            globex.dial(2, b"goes on", ends=True)
            globex.wait_for_frame(END, 2)
        assert [record.definition for record in acme.records] == ["a"]
        assert [record.definition for record in globex.records] == ["b", "b"]
