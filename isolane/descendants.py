"""The processes that steps of this runner start, and their end; the worker has resources.runtimes.runner_processes.

A process that left its parent, session and group is still found: the subreaper inherits it as a descendant.

Timing: ending takes some milliseconds, a second at most.
Model: on Linux the runner is the subreaper of the processes that its steps start.
Guarantee: nothing but descendants of this process is killed.
Failure: without prctl or /proc only direct children are seen; the rest is left to the worker.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from isolane.c_library import c_library

_PR_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 1.0  # for processes that start others faster than they are killed
_PROC = Path("/proc")
_STAT_BYTES = 4096


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parent ends; false if that is not possible here."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        prctl = c_library().prctl
    except (OSError, AttributeError):
        return False
    return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_descendants() -> bool:
    """Kill and reap all descendants of this process; true if there were any."""
    if not _has_children():
        return False
    deadline = time.monotonic() + _END_SECONDS
    while True:
        kill_descendants()
        # Orphans of the killed ones are children of this process from now on.
        if not _has_children() or time.monotonic() > deadline:
            return True
        time.sleep(0.005)


def kill_descendants() -> None:
    """Kill every descendant of this process once, without waiting for its end."""
    for pid in descendants_of(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants_of(*roots: int) -> list[int]:
    """Return the ids of all descendants of these processes that /proc shows, by one look at it."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found = [pid for root in roots for pid in children.get(root, ())]
    for pid in found:  # grows while it is read
        found += children.get(pid, ())
    return found


def _parents() -> dict[int, int]:
    try:
        names = [name for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - a machine has many
    except OSError:
        return {}
    found = {}
    for name in names:
        with contextlib.suppress(OSError, IndexError):  # it ended meanwhile
            # The process name, in brackets, may itself contain brackets.
            found[int(name)] = int(_read(f"{_PROC}/{name}/stat").rpartition(b")")[2].split()[1])
    return found


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _STAT_BYTES)
    finally:
        os.close(descriptor)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True
