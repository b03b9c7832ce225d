"""What sandboxes leave on this machine: processes, namespaces, mounts, cgroups, files and sockets.

Timing: some tens of milliseconds for each look.
Model: sync; other programs of the machine may make sandboxes at the same time, so all is told apart by its trial.
Guarantee: it only looks.
Failure: what disappears during a look is not there.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from foundation.process_states import ENDED
from trials.flood import namespaces
from trials.flood.namespaces import namespaces_of

_CGROUPS = Path("/sys/fs/cgroup")


class Machine:
    """The machine, from the beginning of a trial whose files are below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = namespaces_of(os.getpid())
        self._mounts = _mounts()
        self.guards: set[int] = set()  # that were seen
        self.namespaces: set[str] = set()  # of theirs

    def look(self) -> int:
        """Note all sandboxes that live now, and return how many do."""
        living = dict(self._sandboxes())
        self.guards.update(living)
        self.namespaces.update(*living.values())
        return len(living)

    def left(self, workers: Collection[int]) -> list[str]:
        """Return all that is left when no run is open; `workers` are all that ever were, also dead ones."""
        return [
            *self._of_sandboxes(),
            *self._left_namespaces(workers),
            *self._left_mounts(),
            *_cgroups(workers),
        ]

    def left_by_workers(self, logs: Collection[Path]) -> list[str]:
        """Return what is left when no worker lives: processes of the trial, and files beside the logs."""
        found = [f"process {each.pid}: {each.info['cmdline']}" for each in self._processes()]
        files = sorted(set(self._folder.rglob("*")) - set(logs))
        return found + [f"{_kind(path)} {path}" for path in files]

    def _of_sandboxes(self) -> Iterator[str]:
        for pid, own in self._sandboxes():
            yield f"process {pid} in {sorted(own)}"

    def _sandboxes(self) -> Iterator[tuple[int, set[str]]]:
        """Find guards, without which no process of their sandboxes lives, and their namespaces if they may be known."""
        for process in self._processes():
            if _is_first(process.pid):
                yield process.pid, namespaces_of(process.pid) - self._own

    def _left_namespaces(self, workers: Collection[int]) -> Iterator[str]:
        """Find what keeps a namespace though no guard lives in it."""
        found = namespaces.left(
            namespaces.keepers(),
            machine=self._own,
            noted=self.namespaces,
            trial={*_below(workers), *(process.pid for process in self._processes())},
        )
        for keeper in found:
            yield f"namespace {keeper.namespace} kept by /proc/{keeper.pid}/{keeper.by}"

    def _left_mounts(self) -> Iterator[str]:
        for line in _mounts() - self._mounts:
            yield f"mount {line}"

    def _processes(self) -> Iterator[psutil.Process]:
        """Find the forks of the trial's zygotes, and these: they import from its folder."""
        for process in psutil.process_iter(["cmdline", "status"]):
            told = process.info["cmdline"] or []
            if f"--path={self._folder.resolve()}" in told and process.info["status"] not in ENDED:
                yield process


def _below(workers: Collection[int]) -> Iterator[int]:
    """Find the workers that live, and all below them. A worker is a child of this process, or its id is used again."""
    for worker in psutil.Process().children():
        if worker.pid in workers:
            yield worker.pid
            with contextlib.suppress(psutil.NoSuchProcess):
                yield from (process.pid for process in worker.children(recursive=True))


def _is_first(pid: int) -> bool:
    """Say whether it is process 1 of a namespace below this process's own; every user may know that."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        _, found, behind = status.partition("\nNSpid:")
        numbers = behind.partition("\n")[0].split()
        return bool(found) and len(numbers) > 1 and numbers[-1] == "1"
    return False


def _mounts() -> set[str]:
    """Return the mounts of this process: nothing of a sandbox may appear among them."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line.split(" ", 4)[4] for line in lines}


def _cgroups(workers: Collection[int]) -> list[str]:
    names = tuple(f"isolane-{pid}-" for pid in workers)
    return [
        f"cgroup {root}/{name}"
        for root, folders, _ in os.walk(_CGROUPS)
        for name in folders
        if name.startswith(names)
    ]


def _kind(path: Path) -> str:
    return "socket" if path.is_socket() else "folder" if path.is_dir() else "file"
