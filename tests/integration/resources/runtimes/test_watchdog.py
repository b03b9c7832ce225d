"""Runtimes that nobody keeps alive end: their processes, what these have started, and their folders."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.runtimes import folder as folders
from resources.runtimes.folder import PREFIX
from resources.runtimes.watchdog import Watchdog
from tests.integration.resources.runtimes.conftest import is_gone
from tests.waiting import wait_for

# A step may hold its process's only lock for ever, and have children of its own.
BUSY = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
while True: pass
"""
# A worker with one runtime; it tells both and waits to be killed.
WORKER = """
import subprocess, sys, time
from pathlib import Path
from resources.runtimes.watchdog import Watchdog
watchdog = Watchdog()
runtime = subprocess.Popen(["sleep", "60"], env={"HOME": sys.argv[1]}, start_new_session=True)
watchdog.watch(runtime.pid, Path(sys.argv[1]))
watchdog.keepalive(time.monotonic() + 60)
print(runtime.pid, watchdog.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / f"{PREFIX}one"
    made.mkdir()
    return made


@pytest.fixture
def runtime(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], env={"HOME": str(folder)}, start_new_session=True,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process
        process.kill()


def child_of(runtime: "subprocess.Popen[str]") -> int:
    assert runtime.stdout is not None
    return int(runtime.stdout.readline())


def now() -> float:
    return time.monotonic()


def test_a_runtime_whose_time_is_over_ends_with_all_that_it_started(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    child = child_of(runtime)
    watchdog.watch(runtime.pid, folder)
    watchdog.keepalive(now() + 0.5)
    assert runtime.wait(20) == -signal.SIGKILL
    wait_for(lambda: is_gone(child), "its child to be gone")
    assert watchdog.has_ended(runtime.pid)


def test_it_lives_as_long_as_it_is_kept_alive(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    watchdog.watch(runtime.pid, folder)
    until = now() + 1.5
    while now() < until:
        watchdog.keepalive(now() + 1.0)
        time.sleep(0.05)  # the beat itself
    assert runtime.poll() is None
    assert not watchdog.has_ended(runtime.pid)


def test_without_any_promise_it_lives(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    """As in a run without a server."""
    watchdog.watch(runtime.pid, folder)
    assert not watchdog.has_ended(runtime.pid)
    assert runtime.poll() is None


def test_what_begins_after_the_time_is_over_ends_at_once(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    """A worker that was stopped between its look at the lease and the start of a runtime."""
    watchdog.keepalive(now() - 1)
    watchdog.watch(runtime.pid, folder)
    assert runtime.wait(20) == -signal.SIGKILL


def test_one_that_has_ended_by_itself_was_not_ended_by_it(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    watchdog.watch(runtime.pid, folder)
    watchdog.keepalive(now() + 60)
    runtime.kill()
    runtime.wait()
    assert not watchdog.has_ended(runtime.pid)


def test_a_forgotten_one_is_left_alone(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    watchdog.watch(runtime.pid, folder)
    watchdog.forget(runtime.pid)
    watchdog.keepalive(now() - 1)
    assert not watchdog.has_ended(runtime.pid)  # asked after all that was told before
    assert runtime.poll() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_watchdog_that_was_killed_or_does_not_answer_is_replaced(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path, number: signal.Signals
) -> None:
    watchdog.watch(runtime.pid, folder)
    watchdog.keepalive(now() - 0.001 if number == signal.SIGSTOP else now() + 60)
    first = watchdog.pid
    assert first is not None
    os.kill(first, number)
    if number == signal.SIGKILL:
        # The next promise finds that nobody listens, and the one after it is heard.
        wait_for(lambda: _replaced(watchdog, first), "another watchdog")
        watchdog.keepalive(now() - 1)
    else:
        watchdog.has_ended(runtime.pid)
        assert watchdog.pid != first
    assert runtime.wait(20) == -signal.SIGKILL
    wait_for(lambda: is_gone(first), "the first watchdog to be gone")


def _replaced(watchdog: Watchdog, first: int) -> bool:
    watchdog.keepalive(now() + 60)
    return watchdog.pid != first


def test_with_the_worker_end_its_runtimes_though_they_are_stopped_and_their_folders_go(
    folder: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        runtime, watchdog = map(int, worker.stdout.readline().split())
        os.kill(runtime, signal.SIGSTOP)
        worker.kill()
    wait_for(lambda: is_gone(runtime), "the runtime to be gone")
    wait_for(lambda: not folder.exists(), "its folder to be gone")
    wait_for(lambda: is_gone(watchdog), "the watchdog to be gone")


def test_a_folder_that_a_living_worker_holds_stays(folder: Path) -> None:
    held = folders._hold(folder)
    assert held is not None
    with pytest.raises(BlockingIOError):
        folders.remove_unheld(folder)
    os.close(held)
    assert folder.exists()
