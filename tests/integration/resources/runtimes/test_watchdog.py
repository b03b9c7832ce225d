"""Runtimes that nobody keeps alive end: their processes, what these have started, and their folders."""

import contextlib
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
from resources.runtimes.sweeping import remove_unheld
from resources.runtimes.watchdog import Watchdog
from resources.runtimes.watchdog_process import RuntimeWatch, WatchedRuntime
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
from resources.runtimes.watchdog_process import WatchedRuntime, RuntimeWatch
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
    child, began = child_of(runtime), now()
    watchdog.watch(runtime.pid, folder)
    watchdog.keepalive(now() + 0.5)
    assert not watchdog.lapsed_since(began)
    assert runtime.wait(20) == -signal.SIGKILL
    wait_for(lambda: is_gone(child), "its child to be gone")
    assert watchdog.lapsed_since(began)
    watchdog.keepalive(now() + 60)
    assert watchdog.lapsed_since(began)
    assert not watchdog.lapsed_since(now())  # of what begins now, nothing is over


def test_all_of_them_end_at_once(watchdog: Watchdog, tmp_path: Path) -> None:
    """However many there are, the processes of the machine are looked through a few times only."""
    with contextlib.ExitStack() as stack:
        runtimes = [
            stack.enter_context(
                subprocess.Popen(
                    ["sleep", "60"], env={"HOME": str(tmp_path / str(n))}, start_new_session=True
                )
            )
            for n in range(20)
        ]
        for number, runtime in enumerate(runtimes):
            watchdog.watch(runtime.pid, tmp_path / str(number))
        watchdog.keepalive(now() - 1)
        assert {runtime.wait(20) for runtime in runtimes} == {-signal.SIGKILL}


def test_it_lives_as_long_as_it_is_kept_alive(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    watchdog.watch(runtime.pid, folder)
    began = now()
    while now() < began + 1.5:
        watchdog.keepalive(now() + 1.0)
        time.sleep(0.05)  # the beat itself
    assert runtime.poll() is None
    assert not watchdog.lapsed_since(began)


def test_without_any_promise_it_lives(watchdog: Watchdog) -> None:
    """As in a run without a server."""
    assert not watchdog.lapsed_since(0.0)


def test_what_begins_after_the_time_is_over_ends_at_once(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    """A worker that was stopped between its look at the lease and the start of a runtime."""
    watchdog.keepalive(now() - 1)
    watchdog.watch(runtime.pid, folder)
    assert runtime.wait(20) == -signal.SIGKILL


def test_a_forgotten_one_is_left_alone(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path
) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        watchdog.watch(runtime.pid, folder)
        watchdog.forget(runtime.pid)
        watchdog.watch(other.pid, folder / "other")
        watchdog.keepalive(now() - 1)
        assert other.wait(20) == -signal.SIGKILL
    assert runtime.poll() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_watchdog_that_was_killed_or_stopped_is_replaced_and_no_runtime_ends_with_it(
    watchdog: Watchdog, runtime: "subprocess.Popen[str]", folder: Path, number: signal.Signals
) -> None:
    watchdog.watch(runtime.pid, folder)
    watchdog.keepalive(now() + 60)
    first = watchdog.pid
    assert first is not None
    os.kill(first, number)
    wait_for(lambda: _replaced(watchdog, first), "another watchdog")
    wait_for(lambda: is_gone(first), "the first watchdog to be gone")
    assert runtime.poll() is None
    watchdog.keepalive(now() - 1)
    assert runtime.wait(20) == -signal.SIGKILL


def _replaced(watchdog: Watchdog, first: int) -> bool:
    watchdog.keepalive(now() + 60)
    return watchdog.pid != first


def test_one_that_could_not_be_replaced_is_replaced_with_the_next_promise(
    watchdog: Watchdog,
    runtime: "subprocess.Popen[str]",
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watchdog.watch(runtime.pid, folder)
    first = watchdog.pid
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", _no_more_processes)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: _replaced(watchdog, first), "the first one to be found dead")
        pids = [watchdog.pid]
    watchdog.keepalive(now() + 60)
    pids.append(watchdog.pid)
    assert [pid is None for pid in pids] == [True, False]
    watchdog.keepalive(now() - 1)
    assert runtime.wait(20) == -signal.SIGKILL


def _no_more_processes(*_: object, **__: object) -> None:
    raise BlockingIOError("no more processes")


def test_a_stranger_with_the_id_of_a_runtime_is_left_alone(folder: Path) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        watch = RuntimeWatch()
        watch.handle(f"watch {stranger.pid} {folder}")
        # Somebody else had this id when it was told.
        watch.runtimes[stranger.pid] = WatchedRuntime("1", folder)
        watch.end_all()
        assert stranger.poll() is None
        stranger.kill()


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
    assert remove_unheld([folder], until=now() + 5) == {}
    os.close(held)
    assert folder.exists()
