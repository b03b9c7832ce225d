"""Find what sandboxes of the level `process` leave on the machine: processes, cgroups and mounts.

Timing: some milliseconds, and a walk over all processes.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble, unless a process ends meanwhile.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
_GROUP = re.compile(r"isolane-(\d+)-\d+-\d+")  # worker, its start, number
_PLACE = 4  # the field of a mount's place in mountinfo


def pid_namespace_number(pid: int) -> int:
    """Return the number of the namespace of process ids that a process is in; 0 if it has ended, or cannot be seen."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    return 0


def runtime_number(pid: int, namespace: int) -> int:
    """Return a number for a runtime: its process id, or in a sandbox the namespace of its process ids.

    A sandbox has one runtime, and each of its processes that is killed ends it. Namespaces have larger numbers than
    processes.
    """
    return pid if namespace in {0, pid_namespace_number(os.getpid())} else namespace


def is_sandboxed(pid: int) -> bool:
    """Return True if a process is in a namespace of process ids that is not this one's."""
    return pid_namespace_number(pid) not in {0, pid_namespace_number(os.getpid())}


def sandboxed(worker: int) -> list[psutil.Process]:
    """Return all processes of the sandboxes of a worker, guards included."""
    try:
        found = psutil.Process(worker).children(recursive=True)
    except psutil.Error:
        return []
    return [process for process in found if is_sandboxed(process.pid)]


def cgroups(workers: Iterable[int]) -> list[str]:
    """Find the cgroups of runs of these workers, living or dead."""
    mine = set(workers)
    return [f"cgroup {path}" for path, worker in _groups() if worker in mine]


def mounts() -> set[str]:
    """Return the places of all mounts that this process sees."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {f"mount {line.split()[_PLACE]}" for line in lines}


def _groups() -> Iterator[tuple[str, int]]:
    for folder, names, _ in os.walk(CGROUPS):
        for name in names:
            if found := _GROUP.fullmatch(name):
                yield f"{folder}/{name}", int(found[1])
