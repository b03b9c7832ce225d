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

_KINDS = ("mnt", "pid", "net", "ipc", "uts", "user")
_CGROUPS = Path("/sys/fs/cgroup")


class Machine:
    """The machine, from the beginning of a trial whose files are below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = _namespaces(os.getpid())
        self._mounts = _mounts()
        self.guards: set[int] = set()  # that were seen

    def look(self) -> int:
        """Note all sandboxes that live now, and return how many do."""
        living = {pid for pid, _ in self._sandboxes()}
        self.guards |= living
        return len(living)

    def left(self, workers: Collection[int]) -> list[str]:
        """Return all that is left when no run is open; `workers` are all that ever were, also dead ones."""
        return [*self._of_sandboxes(), *self._left_mounts(), *_cgroups(workers)]

    def left_by_workers(self, logs: Collection[Path]) -> list[str]:
        """Return what is left when no worker lives: processes of the trial, and files beside the logs."""
        found = [f"process {each.pid}: {each.info['cmdline']}" for each in self._processes()]
        files = sorted(set(self._folder.rglob("*")) - set(logs))
        return found + [f"{_kind(path)} {path}" for path in files]

    def _of_sandboxes(self) -> Iterator[str]:
        for pid, namespaces in self._sandboxes():
            yield f"process {pid} in {sorted(namespaces)}"

    def _sandboxes(self) -> Iterator[tuple[int, set[str]]]:
        """Find guards, without which the kernel lets no process of their namespaces live."""
        for process in self._processes():
            namespaces = _namespaces(process.pid) - self._own
            if namespaces and _is_first(process.pid):
                yield process.pid, namespaces

    def _left_mounts(self) -> Iterator[str]:
        for line in _mounts() - self._mounts:
            yield f"mount {line}"

    def _processes(self) -> Iterator[psutil.Process]:
        """Find the forks of the trial's zygotes, and these: they import from its folder."""
        for process in psutil.process_iter(["cmdline", "status"]):
            told = process.info["cmdline"] or []
            if (
                f"--path={self._folder.resolve()}" in told
                and process.info["status"] != psutil.STATUS_ZOMBIE
            ):
                yield process


def _namespaces(pid: int) -> set[str]:
    found = set()
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def _is_first(pid: int) -> bool:
    """Say whether it is process 1 of its own namespace."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        return (
            "\nNSpid:" in status and status.split("\nNSpid:")[1].splitlines()[0].split()[-1] == "1"
        )
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
