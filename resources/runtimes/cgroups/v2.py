"""A group of cgroup v2: one directory with all controllers.

Timing: as `group`; but joining waits some milliseconds for the kernel, unless v2 is mounted with favordynmods.
Model: the kernel counts, and kills all processes of the group when its memory is exceeded.
Guarantee: memory is bounded and never swapped, processor time per 100 ms, threads and processes.
Failure: before Linux 5.19 the peak of memory is the largest value that `usage` has seen.
"""

from collections.abc import Iterator
from pathlib import Path

from isolane.limits import RunLimits, Usage
from isolane.results import Code
from resources.runtimes.cgroups import files
from resources.runtimes.cgroups.group import MEGABYTE, PERIOD_US, RunGroup, quota_us


class V2Group(RunGroup):
    """A group of v2."""

    _seen_bytes = 0

    def usage(self) -> Usage:
        """Return what its processes have used."""
        used = files.counters(self._directories[0] / "cpu.stat").get("usage_usec", 0)
        return Usage(cpu_seconds=used / 1e6, peak_ram_mb=self._peak_bytes() / MEGABYTE)

    def excess(self) -> Code | None:
        """Return the code of the limit that its processes have hit, if any."""
        memory = files.counters(self._file("memory", "memory.events"))
        # Killed, and by its own limit: a full machine kills, too.
        if memory.get("oom_kill") and memory.get("oom"):
            return Code.RAM_EXCEEDED
        if files.counters(self._file("pids", "pids.events")).get("max"):
            return Code.PROCESS_LIMIT
        return None

    def _peak_bytes(self) -> int:
        now = files.number(self._file("memory", "memory.current"))
        self._seen_bytes = max(self._seen_bytes, now)
        return files.number(self._file("memory", "memory.peak")) or self._seen_bytes

    def _settings(self, limits: RunLimits) -> Iterator[tuple[Path, str | int]]:
        if "memory" in self._at and limits.ram_mb is not None:
            yield self._file("memory", "memory.max"), limits.ram_mb * MEGABYTE
            yield self._file("memory", "memory.oom.group"), 1
            swap = self._file("memory", "memory.swap.max")
            if swap.exists():
                yield swap, 0
        if "pids" in self._at and limits.processes is not None:
            yield self._file("pids", "pids.max"), limits.processes
        if "cpu" in self._at and limits.cpu is not None:
            yield self._file("cpu", "cpu.max"), f"{quota_us(limits.cpu)} {PERIOD_US}"
