"""The private RAM of runners: what a run needs beside the pages that it shares with its zygote.

Timing: looks twenty times a second, in a thread of its own.
Model: a runner, or a guard with all that is below it, is a child of a zygote.
Guarantee: best-effort; the highest of the looks counts.
Failure: a process that is gone, or that may not be looked at, counts nothing.
"""

import contextlib
import statistics
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

_PARENTS = {"isolane.zygote", "bench.levels.forker"}
_PRIVATE = (b"Private_Clean:", b"Private_Dirty:", b"Private_Hugetlb:")
_LOOK_SECONDS = 0.05
_KB_PER_MB = 1024


class PrivateRam:
    """Looks at the runners below some processes until it is stopped."""

    def __init__(self, roots: Collection[int], *, sandboxed: bool) -> None:
        self._roots = roots
        self._sandboxed = sandboxed
        self._peaks: dict[int, float] = {}  # MB, by the id of the runner or guard
        self._stop = threading.Event()

    @property
    def mb(self) -> float | None:
        """Return the median of the runners' peaks; None if none was seen."""
        return statistics.median(self._peaks.values()) if self._peaks else None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look while the block runs."""
        thread = threading.Thread(target=self._look_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _look_on(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Look once."""
        for runner in runners_below(self._roots):
            with contextlib.suppress(OSError, psutil.Error):
                if is_sandbox(runner.pid) == self._sandboxed:
                    found = private_mb([runner, *runner.children(recursive=True)])
                    self._peaks[runner.pid] = max(found, self._peaks.get(runner.pid, 0.0))


def runners_below(roots: Collection[int]) -> Iterator[psutil.Process]:
    """Yield the children of all zygotes of these processes."""
    for root in roots:
        for process in psutil.Process(root).children():
            with contextlib.suppress(psutil.Error):
                if _PARENTS.intersection(process.cmdline()):
                    yield from process.children()


def is_sandbox(pid: int) -> bool:
    """Say whether a process is the first one of a namespace of processes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("NSpid:"):
            return line.split()[-1] == "1"
    return False


def private_mb(processes: Collection[psutil.Process]) -> float:
    """Return the pages that only one of these processes has."""
    return sum(_private_kb(process.pid) for process in processes) / _KB_PER_MB


def _private_kb(pid: int) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(_PRIVATE))
    return 0
