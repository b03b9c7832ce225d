"""The kernel's limits of a process in a sandbox.

Timing: microseconds.
Model: in the runner, before it runs foreign code; its processes inherit them.
Guarantee: none of them can be raised again, as there are no capabilities.
Failure: bubble.
"""

import math
import resource
from collections.abc import Collection

from isolane.limits import RunLimits

_MB = 1024 * 1024
_BESIDE_MB = 128  # stacks of threads and pools of allocators, which are reserved and hardly used
_OWN_PROCESSES = 2  # guard and forwarder, which count for the same user namespace


def apply_rlimits(limits: RunLimits, *, counted: Collection[str]) -> None:
    """Set the limits of this process. What a cgroup counts for the whole run is not limited here as well."""
    # Not 0: a program of the machine that takes core dumps is not started for 1 alone.
    _set(resource.RLIMIT_CORE, 1)
    _set(resource.RLIMIT_MEMLOCK, 64 * 1024)
    _set(resource.RLIMIT_MSGQUEUE, 0)
    if limits.open_files is not None:
        _set(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.processes is not None and "processes" not in counted:
        # Counted in the user namespace, which is this run's own.
        _set(resource.RLIMIT_NPROC, limits.processes + _OWN_PROCESSES)
    if limits.ram_mb is not None and "ram_mb" not in counted:
        # Beside what came with the zygote, which counts here though the run does not pay for it.
        _set(resource.RLIMIT_DATA, present_data() + (limits.ram_mb + _BESIDE_MB) * _MB)
    if limits.cpu is not None and limits.seconds is not None and "cpu" not in counted:
        # SIGXCPU first, which tells why it ends, then SIGKILL for those that ignore it.
        _set(resource.RLIMIT_CPU, max(math.ceil(limits.cpu * limits.seconds), 1), beside=1)


def present_data() -> int:
    """Return the bytes that the kernel already counts for RLIMIT_DATA."""
    with open("/proc/self/status", "rb") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(b"VmData:")) * 1024


def _set(which: int, value: int, *, beside: int = 0) -> None:
    _, hard = resource.getrlimit(which)
    most = value + beside
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (min(value, most), most))
