"""The part of the cgroup tree in which this worker makes groups.

Timing: making a group takes some tenths of a millisecond; a sweep too, if there is nothing to remove.
Model: sync, any thread.
Guarantee: a group that cannot be made whole is removed; groups of living workers and of others are never touched.
Failure: `create` raises RuntimeStartError; a group that cannot be removed is logged, and tried by the next sweep.
"""

import os
from collections import deque
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from isolane.limits import RunLimits
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.cgroups import directories, names
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.faults import reported

_KEPT_BY = {"cpu": "cpu", "memory": "ram_mb", "pids": "processes"}
_numbers = count(1)  # of this process: its trees make groups in the same directories


class Cgroups:
    """Makes the groups of this worker's runs below one directory of each controller's hierarchy."""

    def __init__(self, kind: type[RunGroup], bases: Mapping[str, Path]) -> None:
        self._kind = kind
        self._bases = bases
        self._stem = names.own_stem()
        self._left: deque[Path] = deque()

    @property
    def kept(self) -> frozenset[str]:
        """The names of the limits that a group keeps."""
        return frozenset(_KEPT_BY[each] for each in self._bases if each in _KEPT_BY)

    def create(self, limits: RunLimits) -> RunGroup:
        """Make the group of one run with those of its limits that a group keeps."""
        group = self._kind(f"{self._stem}-{next(_numbers)}", self._bases, self._left)
        try:
            group.make(limits)
        except BaseException as error:
            group.remove()
            if isinstance(error, OSError):
                raise RuntimeStartError(f"no cgroup for the run: {error}") from error
            raise
        return group

    def sweep(self) -> None:
        """Remove groups of dead workers, and own ones that stayed, and end what runs in them. Never raises."""
        found = [self._left.popleft() for _ in range(len(self._left))]
        with reported("cgroups of dead workers not found"):
            for base in dict.fromkeys(self._bases.values()):
                found += _left_by_dead_workers(base)
        for directory in found:
            self._end(directory)

    def _end(self, directory: Path) -> None:
        with reported(f"the processes of {directory} were not killed"):
            directories.kill_members(directory)
        if not directories.remove(directory) and directory.name.startswith(f"{self._stem}-"):
            self._left.append(directory)


def _left_by_dead_workers(base: Path) -> list[Path]:
    with os.scandir(base) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if names.is_of_dead_worker(entry.name)
            and entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        ]
