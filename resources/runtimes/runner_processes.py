"""The worker's ending of all processes that a runner started, also those that left its process group.

A process id that was reused meanwhile is recognised.

Timing: some milliseconds, half a second at most.
Model: any thread; walks the list of processes.
Guarantee: kills only the runner's descendants and processes with its folder as HOME.
Failure: a process that changed its environment is not found once its runner is dead.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import psutil

_SECONDS = 0.5  # for processes that start others faster than they are killed
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_DEAD = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
_STOP_SECONDS = 0.2  # for the runner to stop; one that its own step traces never does


def end_runner_descendants(runner: int) -> bool:
    """Stop a runner of this worker and kill its descendants; true if certainly none is left."""
    # Stopped, it can neither start more processes nor react to their end, and it still adopts
    # orphans.
    stopped = _stop(runner)
    deadline = time.monotonic() + _SECONDS
    while (found := _descendants(runner)) and time.monotonic() < deadline:
        _kill(found)
        time.sleep(0.002)
    return stopped and not found


def end_foreign(runners: Sequence[int], homes: Sequence[Path]) -> None:
    """End runners that are not children of this process, and every process with one of these folders as HOME.

    All at once: the list of processes is walked a few times, however many runners there are.
    """
    for runner in runners:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(runner, signal.SIGSTOP)
    deadline = time.monotonic() + _SECONDS
    while (found := _below(set(runners))) and time.monotonic() < deadline:
        _kill(found)
        time.sleep(0.002)
    for runner in runners:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(runner, signal.SIGKILL)
    end_strays(*homes)


def end_strays(*homes: Path) -> None:
    """Kill processes that dead runners left: no longer descendants, but with their environment."""
    deadline = time.monotonic() + _SECONDS
    quiet = 0
    # A process that forks and ends while the list is walked hides its child: so two walks must find none.
    while quiet < 2:
        _kill(found := list(_strays(*homes)))
        quiet = 0 if found and time.monotonic() < deadline else quiet + 1


def _stop(runner: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(runner, signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        try:
            state = psutil.Process(runner).status()
        except psutil.Error:
            return False
        if state in _STOPPED:
            return True
        if state in _DEAD:
            return False
        time.sleep(0.001)
    return False


def _descendants(runner: int) -> list[psutil.Process]:
    try:
        found = psutil.Process(runner).children(recursive=True)
    except psutil.Error:
        return []
    return [process for process in found if _runs(process)]


def _below(roots: Set[int]) -> list[psutil.Process]:
    """Return all running descendants of these processes, by one walk."""
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            children.setdefault(process.ppid(), []).append(process)
    found = [child for root in roots for child in children.get(root, ())]
    for process in found:  # grows while it is read
        found += children.get(process.pid, ())
    return [process for process in found if _runs(process)]


def _strays(*homes: Path) -> Iterator[psutil.Process]:
    wanted = {str(home) for home in homes}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # gone, or another user's
            if process.environ().get("HOME") in wanted:
                yield process


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
