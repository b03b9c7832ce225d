"""The names of groups: each tells the worker that made it, so that others recognise groups of dead workers.

Timing: some microseconds.
Model: sync, any thread.
Guarantee: a process id that was reused is recognised by the time of its start.
Failure: a name that is not ours has no owner, and counts as in use.
"""

import os
import re
from pathlib import Path

WORKER_LEAF = "isolane-worker"  # in v2, where the workers themselves are
_NAME = re.compile(r"isolane-([0-9]+)-([0-9]+)-[0-9]+")
_STATE, _START = 0, 19  # fields of /proc/<pid>/stat behind the name of the program
_ENDED = "ZX"


def own_stem() -> str:
    """Return the beginning of the names of this process's groups."""
    return f"isolane-{os.getpid()}-{_start_time(os.getpid())}"


def is_of_dead_worker(name: str) -> bool:
    """Say whether this is the name of a group whose worker has ended."""
    found = _NAME.fullmatch(name)
    return found is not None and _start_time(int(found[1])) != found[2]


def _start_time(pid: int) -> str | None:
    """Return the start of a process in clock ticks since the machine's; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else fields[_START]
