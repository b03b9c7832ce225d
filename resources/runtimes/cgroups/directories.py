"""Ending the processes of a group, and removing its directory.

Timing: some microseconds; at most half a second each while processes end.
Model: sync, any thread.
Guarantee: kills only processes that are in the group; a process id that was reused meanwhile is recognised.
Failure: killing raises OSError; removing is best-effort, and says whether the directory is gone.
"""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

from resources.runtimes.cgroups import files
from resources.runtimes.faults import reported

_SECONDS = 0.5  # for processes to end
_PAUSE_SECONDS = 0.001


def kill_members(directory: Path) -> None:
    """Kill all processes of a group."""
    switch = directory / "cgroup.kill"  # v2, from Linux 5.14
    if switch.exists():
        files.write(switch, 1)
        return
    deadline = time.monotonic() + _SECONDS
    while (found := files.members(directory)) and time.monotonic() < deadline:
        _kill_each(directory, found)
        time.sleep(_PAUSE_SECONDS)


def _kill_each(directory: Path, pids: list[int]) -> None:
    with contextlib.ExitStack() as opened:
        handles = {}
        for pid in filter(None, pids):
            with contextlib.suppress(ProcessLookupError):
                handles[pid] = os.pidfd_open(pid)
                opened.callback(os.close, handles[pid])
        # An id that is still listed now belongs to the process that the handle is of.
        for pid in handles.keys() & files.members(directory):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[pid], signal.SIGKILL)


def remove(directory: Path) -> bool:
    """Remove a group whose processes have ended or are about to; true if it is gone."""
    gone = False
    deadline = time.monotonic() + _SECONDS
    with reported(f"the cgroup {directory} was not removed"):
        while not (gone := _try_remove(directory)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
    return gone


def _try_remove(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True
