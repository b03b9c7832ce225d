"""What keeps namespaces of sandboxes: processes in them, and descriptors of them.

Timing: some tens of milliseconds for a look at all processes.
Model: sync.
Guarantee: it only looks. The kernel gives a number again when its namespace is gone: one that has processes of other
programs in it is theirs now.
Failure: what disappears during a look is not there. Processes that this user may not inspect are not seen, nor what
only the kernel knows: a descriptor that is under way in a socket, a socket that was made in the namespace.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = ("mnt", "pid", "net", "ipc", "uts", "user", "cgroup", "time")
_INSIDE = (*KINDS, "pid_for_children", "time_for_children")
_NAME = re.compile(rf"(?:{'|'.join(KINDS)}):\[\d+\]")
_PROC = Path("/proc")
Link = tuple[str, str]  # a namespace, and the path of a link to it


class Keeper(NamedTuple):
    """A process that keeps a namespace."""

    pid: int
    namespace: str  # as the kernel names it: mnt:[4026531841]
    by: str  # the file below /proc/<pid>
    has_ended: bool = False

    @property
    def is_inside(self) -> bool:
        return not self.by.startswith("fd/")


def namespaces_of(pid: int) -> set[str]:
    """Return the namespaces that a process is in; none if it has ended, or may not be inspected."""
    return {namespace for namespace, _ in _own(_PROC / str(pid) / "ns")}


def keepers() -> list[Keeper]:
    """Return all that keeps any namespace: the threads of processes, and descriptors."""
    found = []
    for process in _PROC.glob("[0-9]*"):
        pid, has_ended = int(process.name), _has_ended(process)
        inside = [link for folder in _folders(process) for link in _own(folder)]
        for namespace, path in (*inside, *_descriptors(process / "fd")):
            by = str(Path(path).relative_to(process))
            found.append(Keeper(pid, namespace, by, has_ended))
    return found


def left(
    found: Collection[Keeper],
    *,
    machine: Collection[str],
    noted: Collection[str],
    trial: Collection[int],
) -> list[Keeper]:
    """Return the keepers of sandboxes' namespaces.

    A process of the trial may keep none but the machine's; zombies keep that of their user. Another one may have no
    descriptor of one that was noted, unless the number is that of a newer namespace in which other programs are.
    """
    others = {
        each.namespace
        for each in found
        if each.is_inside and not each.has_ended and each.pid not in trial
    }
    stale = set(noted) - others
    return [
        each
        for each in found
        if each.namespace not in machine
        and (each.pid in trial or (each.namespace in stale and not each.is_inside))
    ]


def _has_ended(process: Path) -> bool:
    with contextlib.suppress(OSError):
        stat = (process / "stat").read_text(encoding="ascii", errors="replace")
        return stat.rpartition(")")[2].split()[0] in {"Z", "X"}
    return False


def _folders(process: Path) -> list[Path]:
    return [process / "ns", *process.glob("task/*/ns")]


def _own(folder: Path) -> Iterator[Link]:
    # By their names: a process that hides itself may not even list its own.
    return _links(f"{folder}/{name}" for name in _INSIDE)


def _descriptors(folder: Path) -> Iterator[Link]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from _links(entry.path for entry in entries)


def _links(paths: Iterable[str]) -> Iterator[Link]:
    """Find the links that lead to namespaces."""
    for path in paths:
        with contextlib.suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115 - very many
            if _NAME.fullmatch(target):
                yield target, path
