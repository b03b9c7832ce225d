"""The CPU time and peak RAM of a process, as the kernel shows them.

Timing: some tens of microseconds.
Model: sync, any thread.
Guarantee: best-effort; of its children it counts those that it has waited for.
Failure: a process that is gone has used nothing.
"""

import contextlib
import os
import time
from pathlib import Path

from isolane.limits import Usage

_TICKS = os.sysconf("SC_CLK_TCK")
_OWN, _CHILDREN = (
    slice(11, 13),
    slice(13, 15),
)  # user and system time in /proc/PID/stat, behind the name
_CPUCLOCK_SCHED = 2  # which clock of a process; its id is made of this and the process id
_KB_PER_MB = 1024
_PAGE, _MB = os.sysconf("SC_PAGE_SIZE"), 1 << 20


def used_by(pid: int) -> Usage:
    """Return what a process has used since its start; its peak, since that was reset last."""
    return Usage(cpu_seconds=_cpu_seconds(pid), peak_ram_mb=_peak_kb(pid) / _KB_PER_MB)


def anonymous_mb(pid: int) -> float:
    """Return the RAM that a process uses now beside that of files, which the kernel can take back."""
    with contextlib.suppress(OSError):
        resident, shared = Path(f"/proc/{pid}/statm").read_bytes().split()[1:3]
        return (int(resident) - int(shared)) * _PAGE / _MB
    return 0.0


def reset_peak(pid: int) -> None:
    """Let the peak begin at what the process uses now."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_bytes(b"5")


def _cpu_seconds(pid: int) -> float:
    """Return its own time, by its clock if it lives, since /proc counts in hundredths; and that of its children."""
    with contextlib.suppress(OSError, ValueError):
        # The process name, in brackets, may itself contain brackets.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        own, children = (
            sum(map(int, fields[_OWN])) / _TICKS,
            sum(map(int, fields[_CHILDREN])) / _TICKS,
        )
        with contextlib.suppress(OSError):
            own = time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
        return own + children
    return 0.0


def _peak_kb(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1])
    return 0
