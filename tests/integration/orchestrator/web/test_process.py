"""The web process as the stack starts it, against callers without a login, with few descriptors."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.embedded.child import ChildProcess, log_path, log_tail
from orchestrator.embedded.ports import ReservedPort
from orchestrator.stack import _web as web_child
from tests.integration.orchestrator.web.server import ADDRESS, chunked, get, request
from tests.waiting import wait_for

DESCRIPTORS = 256
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Process:
    """The process, its address and its open files."""

    pid: int
    port: int
    log: Path

    def connect(self, sent: bytes) -> socket.socket:
        connection = socket.create_connection((ADDRESS, self.port), timeout=5)
        connection.sendall(sent)
        return connection

    def temporary_bytes(self) -> int:
        """Of files that it has open and that have no name any more."""
        return sum(map(_temporary_bytes, Path(f"/proc/{self.pid}/fd").iterdir()))


def _temporary_bytes(descriptor: Path) -> int:
    try:
        return descriptor.stat().st_size if "(deleted)" in str(descriptor.readlink()) else 0
    except FileNotFoundError:  # closed meanwhile
        return 0


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    port = ReservedPort()
    logs = tmp_path_factory.mktemp("web")
    child = web_child(dict(os.environ), port.number)
    few = ("/bin/sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")
    running = ChildProcess(replace(child, argv=(*few, *child.argv)), logs)
    try:

        def ready() -> bool:
            assert not running.has_ended(), log_tail(logs, child.name)
            return child.ready is not None and child.ready()

        wait_for(ready, "web to be ready", child.ready_timeout)
        yield Process(pid=running.pid, port=port.number, log=log_path(logs, child.name))
    finally:
        running.end(hastened=lambda: False)
        running.reap()


@pytest.mark.parametrize(
    "path", ["/healthz", "/nope", "/login/", "/static/x", "/api/v1/executions"]
)
def test_no_body_is_kept_beyond_the_limit_wherever_it_is_sent(process: Process, path: str) -> None:
    with process.connect(request(path, "Transfer-Encoding: chunked")) as connection:
        kept = 0
        try:
            for _ in range(16):
                connection.sendall(chunked(MEGABYTE, chunk=MEGABYTE).removesuffix(b"0\r\n\r\n"))
                kept = max(kept, process.temporary_bytes())
            connection.sendall(b"0\r\n\r\n")
        except ConnectionError:
            pass  # refused meanwhile
        answer = connection.recv(1_000)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"at most 2621440 bytes" in answer
    assert kept < 3 * MEGABYTE


def test_length_and_chunks_exclude_each_other(process: Process) -> None:
    both = ("Content-Length: 3", "Transfer-Encoding: chunked")
    with process.connect(request("/healthz", *both, body=b"3\r\nabc\r\n0\r\n\r\n")) as connection:
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")


def test_more_half_open_requests_than_descriptors_stop_nobody_and_fill_no_log(
    process: Process,
) -> None:
    before = len(process.log.read_text())
    half = request("/api/v1/executions", "Content-Length: 100", body=b"{")
    with ExitStack() as stack:
        for _ in range(2 * DESCRIPTORS):
            stack.enter_context(process.connect(half))
        for _ in range(10):
            with process.connect(get("/healthz")) as victim:
                assert victim.recv(1_000).startswith(b"HTTP/1.1 200 ")
    written = process.log.read_text()[before:]
    assert len(written) < 10_000
    assert "CONNECTIONS_FULL" in written
    assert "out of system resource" not in written
