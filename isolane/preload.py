"""The import of packages before a fork, and the finding of those that start threads.

A thread does not survive a fork, and the locks that it held stay locked. So what starts threads at its import, although
the variables of the known libraries ask for one, is imported after the fork.

Timing: as long as the imports take.
Model: in the main thread of a process that has no other one.
Guarantee: afterwards there is one thread, or ThreadsStarted names the package.
Failure: bubble.
"""

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator

from isolane.discovery import NodeSource

_ONE_THREAD = (
    "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


class ThreadsStarted(Exception):
    """A package has started threads, so this process must not fork."""

    def __init__(self, name: str, threads: int, seconds: float) -> None:
        super().__init__(name)
        self.name = name
        self.threads = threads
        self.seconds = seconds


def preload(sources: Iterable[NodeSource], *, late: Collection[str]) -> dict[str, str]:
    """Import all sources but the late ones; return their versions by name."""
    versions: dict[str, str] = {}
    with _one_thread():
        for source in sources:
            if source.name not in late:
                versions |= _load(source)
    return versions


def _load(source: NodeSource) -> dict[str, str]:
    began = time.monotonic()
    versions = source.load()
    if (threads := count_threads()) > 1:
        raise ThreadsStarted(source.name, threads - 1, time.monotonic() - began)
    return versions


def count_threads() -> int:
    """Return how many threads this process has, also those that are not Python's."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - only their number


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Ask the known libraries for one thread, unless the operator asked for something else."""
    added = [name for name in _ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
