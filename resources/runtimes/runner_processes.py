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
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from foundation.process_states import ENDED
from isolane.descendants import descendants_of

_SECONDS = 0.5  # for processes that start others faster than they are killed
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_STOP_SECONDS = 0.2  # for the runner to stop; one that its own step traces never does


def end_runner_descendants(*runners: int) -> set[int]:
    """Stop runners of this worker and kill their descendants; return those of which certainly none is left."""
    # Stopped, they can neither start more processes nor react to their end, and they still adopt
    # orphans.
    stopped = _stop(*runners)
    deadline = time.monotonic() + _SECONDS
    while (found := _below(*runners)) and time.monotonic() < deadline:
        _kill(found)
        time.sleep(0.002)
    return set() if found else stopped


def end_foreign(runners: Sequence[int], homes: Sequence[Path]) -> None:
    """End runners that are not children of this process, and every process with one of these folders as HOME.

    All at once: the list of processes is walked a few times, however many runners there are.
    """
    for runner in runners:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(runner, signal.SIGSTOP)
    deadline = time.monotonic() + _SECONDS
    while (found := _below(*runners)) and time.monotonic() < deadline:
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


def _stop(*runners: int) -> set[int]:
    """Stop them; return those that have stopped, and not died before."""
    for runner in runners:
        with contextlib.suppress(ProcessLookupError):
            os.kill(runner, signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_SECONDS
    states = {runner: _state(runner) for runner in runners}
    while time.monotonic() < deadline:
        running = [pid for pid, state in states.items() if state not in (*_STOPPED, *ENDED)]
        if not running:
            break
        time.sleep(0.001)
        states.update({pid: _state(pid) for pid in running})
    return {runner for runner, state in states.items() if state in _STOPPED}


def _state(pid: int) -> str:
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return psutil.STATUS_DEAD


def _below(*roots: int) -> list[psutil.Process]:
    """Return all running descendants of these processes."""
    found = []
    for pid in descendants_of(*roots):
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
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
        return bool(process.status() not in ENDED)
    except psutil.Error:
        return False
