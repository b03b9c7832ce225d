"""The import of packages before a fork, and the finding of those that must be imported after it.

A thread does not survive a fork, and the locks that it held stay locked. A descriptor or a piece of shared memory does
survive: all runs would share it, past the walls between them. So a package that starts threads although the variables
of the known libraries ask for one, opens something or shares memory at its import, is imported after the fork.

Timing: as long as the imports take.
Model: in the main thread of a process that has no other one.
Guarantee: afterwards there is one thread, and nothing to share, or ImportLeft names the package.
Failure: bubble.
"""

import contextlib
import gc
import os
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from isolane.discovery import NodeSource

ONE_THREAD = (
    "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


class ImportLeft(Exception):
    """A package has left something that must not be there at a fork."""

    def __init__(self, name: str, left: str, seconds: float) -> None:
        super().__init__(name)
        self.name = name
        self.left = left  # in words
        self.seconds = seconds


class ProcessState(NamedTuple):
    """The threads, descriptors and writable shared memory of this process."""

    threads: int
    descriptors: frozenset[str]
    shared: frozenset[str]

    @classmethod
    def now(cls) -> "ProcessState":
        """Look at it."""
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        maps = [line.split() for line in lines]
        shared = {fields[0] for fields in maps if "w" in fields[1] and "s" in fields[1]}
        return cls(_count("task"), frozenset(_open_files()), frozenset(shared))

    def left_since(self, before: "ProcessState") -> str:
        """Say what has been added; nothing if nothing was."""
        found = []
        if self.threads > 1:
            found.append(f"starts {_number(self.threads - 1, 'thread')}")
        if opened := self.descriptors - before.descriptors:
            found.append(f"opens {_number(len(opened), 'file or socket', 'files or sockets')}")
        if self.shared - before.shared:
            found.append("shares memory")
        return " and ".join(found)


def preload(sources: Iterable[NodeSource], *, late: Collection[str]) -> dict[str, str]:
    """Import all sources but the late ones; return their versions by name."""
    versions: dict[str, str] = {}
    with _one_thread():
        for source in sources:
            if source.name not in late:
                versions |= _load(source)
    return versions


def _load(source: NodeSource) -> dict[str, str]:
    began, before = time.monotonic(), ProcessState.now()
    versions = source.load()
    seconds = time.monotonic() - began
    gc.collect()  # what only a cycle references was not left on purpose
    if left := ProcessState.now().left_since(before):
        raise ImportLeft(source.name, left, seconds)
    return versions


def _count(kind: str) -> int:
    return len(os.listdir(f"/proc/self/{kind}"))  # noqa: PTH208 - only their number


def _open_files() -> Iterator[str]:
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            yield f"{link.name} {link.readlink()}"


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Ask the known libraries for one thread, unless the operator asked for something else."""
    added = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
