"""resources.gate.gate: a runtime that keeps to nothing harms nobody and is ended."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from isolane.gate.frames import CHUNK, NAME_MAX, WINDOW, FrameKind, GateFrame, encode
from isolane.protocol import HEADER, VERSION
from resources.gate import gate as gate_module
from resources.gate import open_connections
from resources.gate.brokers import relay as relay_module
from resources.gate.brokers.base import Broker
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.share import Share
from resources.gate.record import ConnectionReason
from tests.integration.resources.gate.remote import (
    SECONDS,
    Remote,
    Runtime,
    a_full_server,
    a_remote,
    a_route,
    a_runtime,
    a_sink,
)
from tests.waiting import wait_for

MB = 1024 * 1024
DATA, END, RESET, CREDIT, DIAL = (
    FrameKind.DATA, FrameKind.END, FrameKind.RESET, FrameKind.CREDIT, FrameKind.DIAL,
)  # fmt: skip
RUN_ENDED = ConnectionReason.RUN_ENDED


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


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([GateFrame(DIAL, 0, 0)], "DIAL: a connection's number was used before"),
        ([GateFrame(DIAL, 5, 0), GateFrame(DIAL, 5, 0)], "DIAL: a connection's number"),
        ([GateFrame(DIAL, 5, 0), GateFrame(DIAL, 4, 0)], "DIAL: a connection's number"),
        ([GateFrame(DIAL, 2**32 - 1, 0), GateFrame(DIAL, 1, 0)], "DIAL: a connection's number"),
        ([GateFrame(DIAL, 1, 1)], "DIAL: there is no such route"),
        ([GateFrame(DIAL, 1, 2**32 - 1)], "DIAL: there is no such route"),
        ([GateFrame(DATA, 1, 0, b"x")], "DATA: of a connection that is over or never was"),
        ([GateFrame(DIAL, 1, 0), GateFrame(END, 1), GateFrame(DATA, 1, 0, b"x")], "DATA: behind the end"),
        ([GateFrame(DIAL, 1, 0), GateFrame(RESET, 1), GateFrame(DATA, 1, 0, b"x")], "DATA: of a connection"),
        ([GateFrame(DIAL, 1, 0), GateFrame(END, 1), GateFrame(END, 1)], "END: twice"),
        ([GateFrame(DIAL, 1, 0), GateFrame(CREDIT, 1, 1)], "CREDIT: more than was used"),
        ([GateFrame(DIAL, 1, 0), GateFrame(CREDIT, 1, 2**32 - 1)], "CREDIT: more than was used"),
        ([GateFrame(FrameKind.ROUTES, data=b"{}")], "frame type 16 is not expected"),
        ([GateFrame(FrameKind.FLUSH)], "frame type 17 is not expected"),
    ],
)  # fmt: skip
def test_a_breach_of_the_protocol_ends_the_runtime_once(
    runtime: Runtime, frames: list[GateFrame], message: str
) -> None:
    runtime.send(*frames, GateFrame(DIAL, 0, 0))  # and once more
    assert message in runtime.wait_for_fault()
    runtime.gate.close()
    runtime.gate.close()
    assert len(runtime.faults) == 1
    assert not runtime.gate._dialled
    dialled = {frame.connection for frame in frames if frame.kind is DIAL}
    assert len(runtime.records) <= len(dialled)


@pytest.mark.parametrize(
    "data",
    [
        HEADER.pack(VERSION, DATA, 10**9),
        HEADER.pack(VERSION, 99, 0),
        HEADER.pack(0, DATA, 5),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_bytes_that_are_no_frames_end_the_runtime(runtime: Runtime, data: bytes) -> None:
    runtime.send_bytes(data)
    assert runtime.wait_for_fault()


def test_more_bytes_than_there_was_credit_for_end_the_runtime() -> None:
    with a_full_server() as port, a_runtime(a_route(port)) as runtime:
        runtime.dial(1)
        for _ in range(WINDOW // CHUNK):
            runtime.send(GateFrame(DATA, 1, 0, bytes(CHUNK)))
        runtime.send(GateFrame(DATA, 1, 0, b"x"))
        assert "more bytes than there was credit for" in runtime.wait_for_fault()
        runtime.wait_for_reasons(RUN_ENDED)


def test_half_a_frame_and_silence_stop_nobody(remote: Remote) -> None:
    route = a_route(remote.port)
    with a_runtime(route) as silent, a_runtime(route) as other:
        silent.dial(1, b"x")
        wait_for(lambda: silent.bytes_of(1), "bytes")
        silent.send_bytes(encode(GateFrame(DATA, 1, 0, b"hello"))[:-2])
        other.dial(1, b"hello", ends=True)
        other.wait_for_frame(END, 1)
        began = time.monotonic()
        silent.gate.close()
        assert time.monotonic() - began < 1
        silent.wait_for_reasons(RUN_ENDED)


def test_credit_that_nobody_used_and_floods_cost_only_the_runtime_time(remote: Remote) -> None:
    route = a_route(remote.port)
    with a_runtime(route) as flooding, a_runtime(route) as other:
        flooding.dial(1)
        flood = encode(GateFrame(CREDIT, 1, 0)) * 1000
        for number in range(1, 6):
            flooding.send_bytes(flood)
            began = time.monotonic()
            other.dial(number, b"hello", ends=True)
            other.wait_for_frame(END, number)
            assert time.monotonic() - began < 2
        assert not flooding.faults


def test_a_flood_of_names_is_recorded_in_part(runtime: Runtime) -> None:
    names = [GateFrame(FrameKind.REFUSED_NAME, data=b"\xff%d" % number) for number in range(1200)]
    runtime.gate._share.pace.pause = lambda *_: 0.0  # type: ignore[method-assign]  # as if time passed
    runtime.send(*names, GateFrame(FrameKind.LISTENING))
    assert runtime.gate.wait_until_open(SECONDS)
    assert len(runtime.records) == 1000
    assert runtime.records[7].host == "\N{REPLACEMENT CHARACTER}7"
    assert {record.reason for record in runtime.records} == {ConnectionReason.NOT_DECLARED}


def test_names_are_charged_and_so_slow_down(runtime: Runtime) -> None:
    names = encode(GateFrame(FrameKind.REFUSED_NAME, data=b"x")) * 800
    began = time.monotonic()
    runtime.send_bytes(names)
    wait_for(lambda: runtime.records, "names")
    runtime.send(GateFrame(FrameKind.LISTENING))
    assert runtime.gate.wait_until_open(SECONDS)
    assert time.monotonic() - began > 0.5  # it has 16 800 frames to pay for, and 5 000 are free


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\0b", b"\xed\xa0\x80", b"x" * NAME_MAX])
def test_a_name_may_be_any_bytes(runtime: Runtime, name: bytes) -> None:
    runtime.send(GateFrame(FrameKind.REFUSED_NAME, data=name))
    (record,) = runtime.wait_for_reasons(ConnectionReason.NOT_DECLARED)
    assert record.is_refusal
    assert "\0" not in record.host
    record.host.encode()  # may be stored
    assert (record.port, record.definition) == (0, "")


def test_a_runtime_that_never_reads_costs_the_worker_little() -> None:
    def pour(sock: socket.socket) -> None:
        while True:
            sock.sendall(bytes(MB))

    with a_remote(pour) as remote, a_runtime(a_route(remote.port), connections=4) as runtime:
        for number in range(1, 5):
            runtime.dial(number)

        def kept() -> int:
            if (multiplexer := runtime.gate._multiplexer) is None:
                return 0
            found = len(multiplexer._unsent)
            return found + sum(len(one._outgoing) for one in multiplexer.connections.values())

        wait_for(lambda: kept() > 2 * CHUNK, "it is full")
        for _ in range(20):
            assert kept() <= 4 * (64 * 1024 + CHUNK)
            time.sleep(0.01)
        assert runtime.gate._multiplexer is not None
        assert len(runtime.gate._multiplexer._urgent) < 10


def test_resets_that_are_never_answered_end_the_runtime(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_module, "_UNFINISHED_MOST", 30)
    for number in range(1, 32):
        runtime.dial(number)
    assert "connections that were reset are not ended" in runtime.wait_for_fault()
    wait_for(lambda: len(runtime.records) == 30, "records")


def test_a_refused_connection_keeps_no_task_if_it_is_never_answered(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", 0.2)
    for number in range(1, 20):
        runtime.dial(number, b"x")
    wait_for(lambda: len(runtime.records) == 15, "refusals")
    wait_for(lambda: len(runtime.gate._dialled) == 4, "only the served ones are kept", 2.0)


def test_nothing_goes_on_of_a_run_whose_time_is_over(remote: Remote, runtime: Runtime) -> None:
    """A worker that was stopped finds bytes when it continues, and another one has the run by then."""
    runtime.dial(1)
    runtime.send(GateFrame(DATA, 1, 0, b"before"))
    wait_for(lambda: runtime.bytes_of(1) == b"before", "it is sent back")
    runtime.is_over = True
    runtime.send(GateFrame(DATA, 1, 0, b"COMMIT"))
    (record,) = runtime.wait_for_reasons(RUN_ENDED)
    assert (record.sent, runtime.faults) == (len(b"before"), [])


def test_what_the_gate_holds_of_a_run_whose_time_is_over_does_not_go_on() -> None:
    """Bytes in front of an end in order wait for a server that reads late."""
    may_read = threading.Event()

    def read_late(sock: socket.socket) -> None:
        may_read.wait(SECONDS)
        late.read_all(sock)

    with a_remote(read_late) as late, a_runtime(a_route(late.port)) as runtime:
        runtime.dial(1)
        runtime.fill(1, 0)
        runtime.send(GateFrame(END, 1))
        wait_for(lambda: runtime.gate._dialled[1].connection.has_ended, "the end")
        held = len(runtime.gate._dialled[1].connection._incoming)
        assert held > CHUNK
        runtime.is_over = True
        may_read.set()
        (record,) = runtime.wait_for_reasons(RUN_ENDED)
        wait_for(lambda: late.ends, "the server's end")
        assert late.ends == ["ConnectionResetError"]
        assert len(late.got) <= record.sent - held


def test_frames_that_were_read_and_wait_for_their_turn_do_not_go_on_either() -> None:
    large, small = (encode(GateFrame(DATA, 1, 0, data)) for data in (b"x" * 65_000, b"y"))
    with a_sink() as sink, a_runtime(a_route(sink.port)) as runtime:
        runtime.dial(1)
        runtime.send_bytes(small * 5100)  # so that it is read slowly from now on
        runtime.send_bytes(large + small * 5000)  # and much at once
        wait_for(lambda: sink.got.count(b"y") > 5200, "some of them")
        runtime.is_over = True
        (record,) = runtime.wait_for_reasons(RUN_ENDED)
        wait_for(lambda: sink.ends, "the server's end")
        assert len(sink.got) <= record.sent < 65_000 + 6500


def test_requests_behind_each_other_end_with_the_time_of_the_run() -> None:
    """They are read already, and each would go to the server with the credential."""

    def answer(sock: socket.socket) -> None:
        while data := sock.recv(65536):
            slow.got += data
            time.sleep(0.02)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * data.count(b"\r\n\r\n"))

    with a_remote(answer) as slow:
        head = f"POST /pay HTTP/1.1\r\nHost: a:{slow.port}\r\nContent-Length: 0\r\n\r\n".encode()
        with a_runtime(a_route(slow.port, broker=an_http_broker(slow.port))) as runtime:
            runtime.dial(1, head * 200, ends=True)
            wait_for(lambda: slow.got.count(b"/pay") > 2, "some requests")
            runtime.is_over = True
            runtime.channel.close()  # as the guard does when the time is over
            runtime.wait_for_reasons(RUN_ENDED)
            asked = slow.got.count(b"/pay")
            wait_for(lambda: slow.ends, "the server's end")
            assert slow.got.count(b"/pay") == asked < 200


TUNNELLED = b"\x16\x03"  # the beginning of a client's own TLS


def an_http_broker(port: int) -> Broker:
    login = HttpLogin(scheme="http", host="a", port=port, header="X-Key", value="s")
    return HttpBroker(login, Share())


@pytest.fixture
def silent() -> Iterator[Remote]:
    """A server that neither reads nor ends."""
    is_over = threading.Event()
    with a_remote(lambda _: is_over.wait(SECONDS)) as server:
        yield server
        is_over.set()


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_run_that_has_left_waits_for_no_server(silent: Remote, has_ended: bool) -> None:
    route = a_route(silent.port, broker=an_http_broker(silent.port))
    with a_runtime(route) as runtime:
        runtime.dial(1, TUNNELLED, ends=has_ended)
        wait_for(lambda: silent.accepted, "a connection")
        runtime.send(GateFrame(RESET, 1))
        runtime.wait_for_reasons(ConnectionReason.CLOSED if has_ended else ConnectionReason.RESET)


UPLOAD = b"POST / HTTP/1.1\r\nHost: a:PORT\r\nContent-Length: 90000000\r\n\r\n"


@pytest.mark.parametrize("begins", [TUNNELLED, UPLOAD], ids=["tunnel", "request"])
def test_nor_does_it_for_one_that_does_not_read(
    silent: Remote, monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    monkeypatch.setattr(relay_module, "_SILENCE_SECONDS", 0.2)
    begins = begins.replace(b"PORT", str(silent.port).encode())
    route = a_route(silent.port, broker=an_http_broker(silent.port))
    with a_runtime(route) as runtime:
        runtime.dial(1, begins)
        runtime.fill(1, len(begins))
        runtime.send(GateFrame(RESET, 1))
        runtime.wait_for_reasons(ConnectionReason.RESET)


class Stubborn(Broker):
    """A broker that goes on when it is cancelled, so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.may_end = threading.Event()

    async def serve(self, inside: object, connect: object) -> None:
        """Wait for the test."""
        while not self.may_end.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self.left -= 1
                if self.left < 0:
                    raise


def test_a_connection_that_goes_on_after_its_run_is_recorded_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gate_module, "_CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(gate_module, "_LEAVE_SECONDS", 0.1)
    broker = Stubborn(100)
    with a_runtime(a_route(1, broker=broker)) as runtime:
        runtime.dial(1)
        wait_for(lambda: runtime.gate._dialled, "a connection")
        task = runtime.gate._dialled[1].task
        runtime.channel.close()
        began = time.monotonic()
        runtime.gate.close()
        assert time.monotonic() - began < 1
        assert runtime.reasons == [RUN_ENDED]
        assert broker.left == 97  # the run's end, and each time it took too long
        assert "a connection goes on after its run" in caplog.text
        broker.may_end.set()
        wait_for(lambda: task and task.done(), "its end")
        assert runtime.reasons == [RUN_ENDED]


def test_a_connection_that_goes_on_when_it_is_stopped_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate_module, "_AGAIN_SECONDS", 0.1)
    broker = Stubborn(1)
    with a_runtime(a_route(1, broker=broker), idle_seconds=1) as runtime:
        runtime.dial(1)
        runtime.wait_for_reasons(ConnectionReason.IDLE)
    assert broker.left == -1
