"""A supervising process of its own: stopped, killed, doubled."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import psycopg
import pytest

from orchestrator.embedded.errors import AlreadyRunning
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.state import StackState, read_running, stack_lock
from tests.integration.orchestrator.embedded import supervised_stack
from tests.integration.orchestrator.embedded.waiting import family_of, is_gone, wait_until


@contextlib.contextmanager
def supervised(paths: EmbeddedPaths) -> Iterator[subprocess.Popen[bytes]]:
    """The stack, run by another process."""
    argv = [sys.executable, "-m", supervised_stack.__name__, str(paths.home)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: read_running(paths.state_file) or process.poll(), timeout=60)
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


def described(paths: EmbeddedPaths) -> StackState:
    state = read_running(paths.state_file)
    assert state is not None
    return state


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    family = family_of(process.pid)[1:]
    assert {"postgres", "valkey-server"} <= {one.name() for one in family}
    return family


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_nothing(paths: EmbeddedPaths, number: signal.Signals) -> None:
    with supervised(paths) as process:
        assert described(paths).pid == process.pid
        assert set(described(paths).children) == {"postgres", "valkey", "run-cache", "deaf"}
        family = descendants(process)
        process.send_signal(number)
        assert process.wait(60) == 0

    assert all(map(is_gone, family))
    assert read_running(paths.state_file) is None
    assert list(paths.sockets.iterdir()) == []
    assert list(paths.postgres_sockets.iterdir()) == []


def test_killed_it_takes_everything_along_and_the_next_start_works(paths: EmbeddedPaths) -> None:
    with supervised(paths) as process:
        servers = EmbeddedServers(paths, durable=True)
        with psycopg.connect(servers.owner_url) as owner:
            owner.execute("CREATE TABLE kept AS SELECT 1 AS n")
        with psycopg.connect(servers.login_url):  # an open session must not hold anything up
            family = descendants(process)
            process.kill()
            process.wait()
            wait_until(lambda: all(map(is_gone, family)), timeout=15)
    assert read_running(paths.state_file) is None

    with supervised(paths), psycopg.connect(servers.owner_url) as owner:
        assert owner.execute("SELECT n FROM kept").fetchone() == (1,)


def test_the_next_start_may_follow_at_once(paths: EmbeddedPaths) -> None:
    for _ in range(3):
        with supervised(paths) as process:
            family = descendants(process)
            process.kill()
            process.wait()
    with supervised(paths):
        assert all(map(is_gone, family))


def test_a_second_one_is_refused(paths: EmbeddedPaths) -> None:
    with supervised(paths) as process:
        with pytest.raises(AlreadyRunning) as refused, stack_lock(paths.lock_file):
            pass
        assert refused.value.pid == process.pid
