"""The network of a real sandbox: its declared names and nothing else."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from isolane.limits import RunLimits
from isolane.protocol import Grant
from isolane.sandbox.spec import Wall
from resources.gate.record import ConnectionReason, ConnectionRecord
from resources.runtimes.base import RunIdentity
from resources.runtimes.process import ProcessBackend, ProcessRuntime
from resources.runtimes.sandbox import ALL_WALLS
from tests.integration.resources.gate.remote import Remote, a_remote, a_sink
from tests.integration.resources.runtimes.conftest import Driver, number_of, why_not
from tests.placements import a_placement
from tests.requirements import HAS_IPV6, give_up
from tests.waiting import wait_for

PACKAGES = ["tests.integration.resources.runtimes.process.gate_nodes"]
HOST = "api.example.com"
MB = 1024 * 1024
# Of the host and of the definition; a machine without IPv6 gives no more than one of each.
OF_HOST = ["127.78.0.1", "fd69:736f:6c61:6e65::4e:1"][: 1 + HAS_IPV6]
OF_DEFINITION = "127.77.0.1"
LIMITS = RunLimits(
    ram_mb=256, processes=8, disk_mb=16, open_files=128, connections=8, network_mb=1000, idle_seconds=60
)  # fmt: skip
NOT_DECLARED = ConnectionReason.NOT_DECLARED


class Unwalled(ProcessBackend):
    """Sandboxes in the machine's own network."""

    walls: ClassVar[frozenset[Wall]] = ALL_WALLS - {Wall.NET}


@pytest.fixture(scope="module")
def backend() -> Iterator[ProcessBackend]:
    """One backend for all; a machine that cannot give the level is skipped."""
    if reason := why_not(ProcessBackend):
        give_up(f"the level process is not available: {reason}")
    shared = ProcessBackend(level="process", size=4, packages=PACKAGES)
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    """A server that sends back what comes."""
    with a_remote() as server:
        yield server


def a_grant(port: int, host: str = HOST, name: str = "api") -> Grant:
    return Grant(
        name=name,
        type="http_api",
        definition=name,
        scope="execution",
        config={"base_url": f"http://{host}:{port}"},
        secrets={},
        address="127.0.0.1",
    )


class GatedRun(Driver):
    """A driver, and what its gate records."""

    records: list[ConnectionRecord]

    def closed(self) -> list[ConnectionRecord]:
        """Close it in order and return the records."""
        assert self.runtime.close(5) == ()
        return self.records


Start = Callable[..., GatedRun]


@pytest.fixture
def start(backend: ProcessBackend) -> Iterator[Start]:
    """Open runtimes that are closed at the end."""
    with contextlib.ExitStack() as stack:

        def start_one(
            *grants: Grant, tenant: str = "acme", on: ProcessBackend = backend
        ) -> GatedRun:
            records: list[ConnectionRecord] = []
            runtime = on.start(
                a_placement(f"{tenant}-{time.monotonic_ns()}", tenant_id=number_of(tenant)),
                identity=RunIdentity(tenant=tenant, user_id="ada", request_id="r1"),
                limits=LIMITS,
                grants=grants,
                on_connection=records.append,
            )
            stack.callback(runtime.close, 5)
            runtime.open()
            run = GatedRun(runtime)
            run.records = records
            return run

        yield start_one


def test_a_declared_name_has_addresses_and_another_one_has_none(
    start: Start, remote: Remote
) -> None:
    run = start(a_grant(remote.port))
    told = run.output("gate.resolve", {"names": [HOST, HOST.upper(), "evil.example.com"]})
    assert told["found"] == {HOST: OF_HOST, HOST.upper(): OF_HOST, "evil.example.com": ["gaierror"]}
    assert told["seconds"] < 2  # at once: nothing was waited for
    (record,) = run.closed()
    assert (record.host, record.reason) == ("evil.example.com", NOT_DECLARED)


def test_a_server_is_reached_by_name_and_by_each_address(start: Start, remote: Remote) -> None:
    run = start(a_grant(remote.port))
    places = [[host, remote.port] for host in (HOST, *OF_HOST, OF_DEFINITION)]
    assert run.output("gate.exchange", {"places": places}) == ["hello"] * len(places)
    told = [(record.host, record.sent, record.received) for record in run.closed()]
    assert told == [(HOST, 5, 5)] * len(places)
    assert {record.reason for record in run.records} == {ConnectionReason.CLOSED}


def test_no_other_port_and_no_other_address_is_reached(start: Start, remote: Remote) -> None:
    run, accepted = start(a_grant(remote.port)), len(remote.accepted)
    inside = ["127.0.0.1", "127.79.0.1", *["::1"] * HAS_IPV6]
    refused = [[HOST, remote.port % 60000 + 1], *([address, remote.port] for address in inside)]
    nowhere = [["10.0.0.1", 80], ["93.184.216.34", 80]]
    answers = run.output("gate.exchange", {"places": [*refused, *nowhere]})
    assert answers == ["ConnectionRefusedError"] * len(refused) + ["OSError"] * len(nowhere)
    assert run.closed() == []
    assert len(remote.accepted) == accepted


def test_a_run_without_routes_resolves_nothing_and_its_lookup_is_recorded(start: Start) -> None:
    run = start()
    assert run.output("gate.resolve", {"names": [HOST]})["found"] == {HOST: ["gaierror"]}
    wait_for(lambda: run.records, "a record")
    (record,) = run.closed()
    assert (record.host, record.is_refusal, record.reason) == (HOST, True, NOT_DECLARED)


def test_a_handle_and_a_child_use_the_gate(start: Start, remote: Remote) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"{self.path} of {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        port = server.server_port
        other = a_grant(remote.port, "other.example.com", "other")
        run = start(a_grant(port), other)
        assert run.output("gate.handle", {"path": "/x"}) == f"/x of {HOST}:{port}"
        told = run.output("gate.child", {"host": "other.example.com", "port": remote.port})
        assert told == "by a child"
        run.closed()
        server.shutdown()
        serving.join()


def test_a_step_that_kills_all_it_can_ends_itself_only(start: Start, remote: Remote) -> None:
    hostile, other = start(a_grant(remote.port)), start(a_grant(remote.port), tenant="globex")
    result = hostile.run("gate.massacre", {"host": HOST, "port": remote.port})
    if result.status == "succeeded":  # newer kernels let it kill none
        assert result.output == {"killed": 0, "answer": "hello"}
    else:
        assert not hostile.runtime.alive
    assert other.output("gate.exchange", {"places": [[HOST, remote.port]]}) == ["hello"]


def test_a_run_ends_with_its_forwarder(start: Start, remote: Remote) -> None:
    """Else it would go on without a network, and nobody would know why."""
    run = start(a_grant(remote.port))
    assert isinstance(run.runtime, ProcessRuntime)
    _, forwarder = sorted(psutil.Process(run.runtime.pid).children(), key=lambda one: one.pid)
    forwarder.kill()
    wait_for(lambda: not run.runtime.alive, "the sandbox to end")


def test_megabytes_pass_whole_in_both_directions(start: Start, remote: Remote) -> None:
    run = start(a_grant(remote.port))
    told = run.output("gate.transfer", {"host": HOST, "port": remote.port, "size": 20})
    assert told["up"] == told["down"]
    (record,) = run.closed()
    assert record.sent == record.received == 20 * MB


def test_a_download_that_is_not_read_stops_nobody(start: Start, remote: Remote) -> None:
    def pour(sock: socket.socket) -> None:
        while True:
            sock.sendall(bytes(1024 * 1024))

    with a_remote(pour) as pouring:
        run = start(a_grant(remote.port), a_grant(pouring.port, "big.example.com", "big"))
        parameters = {"pouring": ["big.example.com", pouring.port], "echoing": [HOST, remote.port]}
        assert run.output("gate.stall", parameters) == "hello"
        by_reason = {record.reason: record.host for record in run.closed()}
        assert by_reason == {
            ConnectionReason.CLOSED: HOST,
            ConnectionReason.RUN_ENDED: "big.example.com",
        }
        wait_for(lambda: pouring.ends, "the end of the download")


def test_a_result_passes_a_download_that_goes_on_and_one_that_is_not_read(start: Start) -> None:
    """Within 50 ms, of a hundred MB; the best of some tries, since a busy machine may delay anything."""
    sent: dict[int, int] = {}  # by connection

    def pour(sock: socket.socket) -> None:
        number, size = len(sent), 100 * MB
        sent[number] = 0
        while sent[number] < size:
            sent[number] += sock.send(bytes(min(256 * 1024, size - sent[number])))
        sock.close()

    late, to_come = list[float](), list[int]()
    with a_remote(pour) as remote:
        run = start(a_grant(remote.port))
        for _ in range(3):
            returned_at = run.output("gate.leave_transfer", {"pouring": [HOST, remote.port]})
            late.append(time.monotonic() - returned_at)
            to_come.append(100 * MB - max(list(sent.values())[-2:]))
            assert run.output("gate.wait_for_transfer") == 100 * MB
    assert min(late) < 0.05
    assert max(to_come) > 50 * MB  # it was still under way
    both = {
        ConnectionReason.CLOSED,
        ConnectionReason.RESET,
    }  # one is closed with bytes that nobody has read
    assert {record.reason for record in run.closed()} == both


def test_a_connection_that_is_given_up_leaves_room_for_others(start: Start) -> None:
    most = LIMITS.connections or 0
    with a_remote(lambda sock: sock.recv(1)) as silent:
        run = start(a_grant(silent.port))
        place = {"host": HOST, "port": silent.port, "times": most}
        assert run.output("gate.give_up", place) == ["TimeoutError"] * most
        wait_for(lambda: len(run.records) == most, "their ends")
        assert {record.reason for record in run.records} == {ConnectionReason.CLOSED}
        assert {record.sent for record in run.records} == {len("question")}


def test_connections_end_with_the_run(start: Start) -> None:
    def answer(sock: socket.socket) -> None:
        sock.sendall(sock.recv(4))
        sock.recv(1)

    with a_remote(answer) as remote:
        run = start(a_grant(remote.port))
        run.output("gate.keep", {"host": HOST, "port": remote.port})
        assert run.records == []
        (record,) = run.closed()
        assert (record.reason, record.sent, record.received) == (ConnectionReason.RUN_ENDED, 4, 4)
        wait_for(lambda: remote.ends == ["ConnectionResetError"], "the end at the server")


@pytest.mark.parametrize("size", [1, 300_000])
def test_the_last_bytes_of_a_clean_run_arrive(start: Start, size: int) -> None:
    with a_sink() as remote:
        for number in range(1, 9):
            run = start(a_grant(remote.port))
            run.output("gate.leave", {"host": HOST, "port": remote.port, "size": size})
            (record,) = run.closed()
            assert (record.reason, record.sent) == (ConnectionReason.CLOSED, size)
            wait_for(lambda: len(remote.ends) == number, "an end")  # noqa: B023 - waited for here
        assert remote.ends == ["ended"] * 8
        assert len(remote.got) == 8 * size


def test_two_tenants_know_their_own_names_only(start: Start) -> None:
    with a_remote() as ours, a_remote() as theirs:
        acme = start(a_grant(ours.port, "a.example.com"), tenant="acme")
        globex = start(a_grant(theirs.port, "b.example.com"), tenant="globex")
        names = ["a.example.com", "b.example.com"]
        seen = [run.output("gate.resolve", {"names": names})["found"] for run in (acme, globex)]
        assert [found["a.example.com"] == ["gaierror"] for found in seen] == [False, True]
        assert [found["b.example.com"] == ["gaierror"] for found in seen] == [True, False]
        places = [["127.77.0.1", theirs.port], ["127.78.0.1", ours.port]]
        answers = acme.output("gate.exchange", {"places": places})
        assert answers == ["ConnectionRefusedError", "hello"]
        assert [record.host for record in acme.closed()] == ["b.example.com", "a.example.com"]
        assert [record.host for record in globex.closed()] == ["a.example.com"]
        assert theirs.accepted == []


def test_without_a_network_of_its_own_a_run_binds_nothing_of_the_machine(start: Start) -> None:
    before = _nameservers()
    unwalled = Unwalled(level="process", size=1, packages=PACKAGES)
    try:
        run = start(on=unwalled)
        run.output("gate.resolve", {"names": ["localhost"]})
        assert _nameservers() == before
        assert run.closed() == []
    finally:
        unwalled.stop()


def _nameservers() -> list[str]:
    """Return the sockets at 127.0.0.1:53 in the network of this process."""
    lines = Path("/proc/net/udp").read_text().splitlines()
    return [line.split()[9] for line in lines if "0100007F:0035" in line]  # their inodes
