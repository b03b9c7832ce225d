"""The group of one run: its limits, the way in, what it used, its end.

Timing: making it takes some tenths of a millisecond; removing it too, at most half a second while processes end.
Model: one thread uses it.
Guarantee: the limits hold for all processes of the run together, from the moment they have joined.
Failure: a limit that cannot be set raises OSError; a group that cannot be removed is swept later.
"""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from isolane.limits import RunLimits, Usage
from isolane.results import Code
from resources.runtimes.cgroups import directories, files

MEGABYTE = 1 << 20
PERIOD_US = 100_000  # in which a run may use its share of the processors; the kernel's default
_LEAST_QUOTA_US = 1_000  # the kernel refuses less


class RunGroup(ABC):
    """A directory in each hierarchy that has controllers of ours."""

    def __init__(self, name: str, bases: Mapping[str, Path], left: deque[Path]) -> None:
        self._at = {controller: base / name for controller, base in bases.items()}
        self._directories = tuple(dict.fromkeys(self._at.values()))
        self._left = left  # directories that the next sweep removes
        self._join_fds: list[int] = []

    def make(self, limits: RunLimits) -> None:
        """Make it with these limits."""
        for directory in self._directories:
            directory.mkdir()
        for path, value in self._settings(limits):
            files.write(path, value)

    def join_fds(self) -> list[int]:
        """Return descriptors, open until it is removed: a process that writes b"0" to each has joined.

        The kernel asks for the rights of the process that opened them, so a process in namespaces of its own may join.
        """
        if not self._join_fds:
            flags = os.O_WRONLY | os.O_CLOEXEC
            for directory in self._directories:
                self._join_fds.append(os.open(directory / "cgroup.procs", flags))
        return self._join_fds

    @abstractmethod
    def usage(self) -> Usage:
        """Return what its processes have used since it was made. Memory is with the files that they have read."""

    @abstractmethod
    def excess(self) -> Code | None:
        """Return the code of the limit that its processes have hit, if any."""

    def remove(self) -> None:
        """Remove it when its processes have ended. Repeatable; never raises."""
        while self._join_fds:
            os.close(self._join_fds.pop())
        self._left.extend(each for each in self._directories if not directories.remove(each))

    def _file(self, controller: str, name: str) -> Path:
        """Return the path of a file; it does not exist if this machine lacks the controller."""
        return self._at.get(controller, self._directories[0]) / name

    @abstractmethod
    def _settings(self, limits: RunLimits) -> Iterator[tuple[Path, str | int]]:
        """Yield the files and their values, in the order of writing."""


def quota_us(cores: float) -> int:
    """Return the processor time of a period."""
    return max(int(cores * PERIOD_US), _LEAST_QUOTA_US)
