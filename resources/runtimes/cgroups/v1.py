"""A group of cgroup v1: one directory in the hierarchy of each controller.

Timing: see `resources.runtimes.cgroups.group`.
Model: the kernel counts, and kills the largest process when memory is exceeded; the others go on.
Guarantee: memory is bounded (with swap, where it is counted), processor time per 100 ms, threads and processes.
Failure: without `pids.events` no excess of processes is told; a kill on a full machine is told as one of memory.
"""

import errno
from collections.abc import Iterator
from pathlib import Path

from isolane.limits import RunLimits, Usage
from isolane.results import Code
from resources.runtimes.cgroups import files
from resources.runtimes.cgroups.group import MEGABYTE, RunGroup, quota_us


class V1Group(RunGroup):
    """A group of v1."""

    def make(self, limits: RunLimits) -> None:
        """Make it with these limits."""
        super().make(limits)
        if "cpu" in self._at and limits.cpu is not None:
            self._limit_cpu(limits.cpu)

    def usage(self) -> Usage:
        """Return what its processes have used."""
        nanoseconds = files.number(self._file("cpuacct", "cpuacct.usage"))
        peak = files.number(self._file("memory", "memory.max_usage_in_bytes"))
        return Usage(cpu_seconds=nanoseconds / 1e9, peak_ram_mb=peak / MEGABYTE)

    def excess(self) -> Code | None:
        """Return the code of the limit that its processes have hit, if any."""
        if files.counters(self._file("memory", "memory.oom_control")).get("oom_kill"):
            return Code.RAM_EXCEEDED
        if files.counters(self._file("pids", "pids.events")).get("max"):
            return Code.PROCESS_LIMIT
        return None

    def _settings(self, limits: RunLimits) -> Iterator[tuple[Path, str | int]]:
        if "memory" in self._at and limits.ram_mb is not None:
            yield self._file("memory", "memory.limit_in_bytes"), limits.ram_mb * MEGABYTE
            # With swap, and what the kernel keeps for TCP, which are counted apart.
            for name in ("memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"):
                if (path := self._file("memory", name)).exists():
                    yield path, limits.ram_mb * MEGABYTE
        if "pids" in self._at and limits.processes is not None:
            yield self._file("pids", "pids.max"), limits.processes

    def _limit_cpu(self, cores: float) -> None:
        try:
            files.write(self._file("cpu", "cpu.cfs_quota_us"), quota_us(cores))
        except OSError as error:
            # v1 refuses a quota above that of a group around it, which binds anyway.
            if error.errno != errno.EINVAL:
                raise
