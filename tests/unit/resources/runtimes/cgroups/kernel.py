"""A tree of files that behaves like the kernel's cgroups, as far as the platform uses them."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from resources.runtimes.cgroups import files

V2_FILES = {
    "": {"cgroup.events": "populated 0\n", "cgroup.kill": "", "cpu.stat": "usage_usec 0\n"},
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
        "memory.current": "0",
        "memory.peak": "0",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    },
    "pids": {"pids.max": "max", "pids.events": "max 0\n"},
    "cpu": {"cpu.max": "max 100000"},
}
V1_FILES = {
    "memory": {
        "memory.limit_in_bytes": "-1",
        "memory.memsw.limit_in_bytes": "-1",
        "memory.kmem.tcp.limit_in_bytes": "-1",
        "memory.max_usage_in_bytes": "0",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    },
    "pids": {"pids.max": "max", "pids.events": "max 0\n"},
    "cpu": {"cpu.cfs_quota_us": "-1"},
    "cpuacct": {"cpuacct.usage": "0"},
}


class Kernel:
    """Serves one mounted tree of each kind; groups are directories below `root`."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root / "cgroup"
        self.process = root / "self"
        self.refused: dict[str, int] = {}  # the error number by the name of a file or directory
        self.absent: set[str] = set()  # files that this version does not have
        self.marked: set[Path] = set()
        self._memberships: list[str] = []
        self._mounts: list[str] = []
        self._mkdir, self._rmdir, self._access = os.mkdir, os.rmdir, os.access
        self.process.mkdir()
        self._mkdir(self.root)
        patch.setattr(os, "mkdir", self._make)
        patch.setattr(os, "rmdir", self._remove)
        patch.setattr(os, "access", self._may)
        patch.setattr(os, "getxattr", self._attribute)
        patch.setattr(files, "write", self.write)

    def mount_v2(
        self, own: str, *, controllers: str = "memory pids cpu", members: Iterable[int] = ()
    ) -> Path:
        """Mount v2, and put processes into the group of this one."""
        point = self.root / "unified"
        directory = self._plain(point, own)
        self._fill(directory, V2_FILES[""] | {"cgroup.controllers": controllers})
        self._fill(directory, {"cgroup.subtree_control": "", "cgroup.procs": _lines(members)})
        self._show(f"0::{own}", f"30 20 0:26 / {point} rw - cgroup2 cgroup2 rw,nsdelegate")
        return directory

    def mount_v1(self, own: str, *, hierarchies: Iterable[str]) -> dict[str, Path]:
        """Mount hierarchies of v1 by their controllers, with the group of this process in each."""
        found = {}
        for number, controllers in enumerate(hierarchies, 1):
            point = self.root / controllers
            found[controllers] = self._plain(point, own)
            line = f"{number} 20 0:{number} / {point} rw,relatime - cgroup cgroup rw,{controllers}"
            self._show(f"{number}:{controllers}:{own}", line)
        return found

    def write(self, path: Path, value: str | int) -> None:
        """Write as the kernel would."""
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
        self._check(path)
        if path.name == "cgroup.procs":
            self._join(path, int(value))
        elif path.name == "cgroup.subtree_control":
            if files.members(path.parent):
                raise OSError(errno.EBUSY, "Device or resource busy", str(path))
            path.write_text(f"{path.read_text()} {str(value).removeprefix('+')}")
        else:
            path.write_text(str(value))

    def _join(self, path: Path, pid: int) -> None:
        for other in self.root.rglob("cgroup.procs"):
            if pid in files.members(other.parent):
                other.write_text(_lines(set(files.members(other.parent)) - {pid}))
        path.write_text(_lines([*files.members(path.parent), pid]))

    def _make(self, path: Any, *args: Any, **kwargs: Any) -> None:
        directory = Path(path)
        if directory.is_relative_to(self.root):
            self._check(directory)
            self._check(directory.parent)
        self._mkdir(path, *args, **kwargs)
        if directory.is_relative_to(self.root):
            self._fill(directory, {"cgroup.procs": ""})
            for controller in self._controllers(directory):
                kind = V2_FILES if "unified" in directory.parts else V1_FILES
                self._fill(directory, kind[controller])

    def _controllers(self, directory: Path) -> list[str]:
        if "unified" in directory.parts:
            return ["", *files.words(directory.parent / "cgroup.subtree_control")]
        return directory.relative_to(self.root).parts[0].split(",")

    def _remove(self, path: Any, *args: Any, **kwargs: Any) -> None:
        directory = Path(path)
        if directory.is_relative_to(self.root) and directory.exists():
            self._check(directory)
            if files.members(directory):
                raise OSError(errno.EBUSY, "Device or resource busy", str(directory))
            # The kernel's files need not be removed one by one.
            for each in directory.iterdir():
                each.unlink()
        self._rmdir(path, *args, **kwargs)

    def _may(self, path: Any, *args: Any, **kwargs: Any) -> bool:
        return Path(path).name not in self.refused and self._access(path, *args, **kwargs)

    def _attribute(self, path: Any, name: str) -> bytes:
        if Path(path) in self.marked:
            return b"1"
        raise OSError(errno.ENODATA, "No data available", name)

    def _check(self, path: Path) -> None:
        if number := self.refused.get(path.name):
            raise OSError(number, os.strerror(number), str(path))

    def _plain(self, point: Path, own: str) -> Path:
        directory = point / own.lstrip("/")
        for each in [*reversed(directory.parents), directory]:
            if not each.exists():
                self._mkdir(each)
        return directory

    def _fill(self, directory: Path, content: dict[str, str]) -> None:
        for name in content.keys() - self.absent:
            (directory / name).write_text(content[name])

    def _show(self, membership: str, mount: str) -> None:
        self._memberships.append(membership)
        self._mounts.append(mount)
        (self.process / "cgroup").write_text(_lines(self._memberships))
        (self.process / "mountinfo").write_text(_lines(self._mounts))


def _lines(values: Iterable[object]) -> str:
    return "".join(f"{value}\n" for value in values)


def groups_below(root: Path) -> list[str]:
    """Return the names of all groups of ours."""
    return sorted(path.name for path in root.rglob("isolane-*") if path.is_dir())
