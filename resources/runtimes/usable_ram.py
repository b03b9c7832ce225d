"""The RAM that this process may use: the machine's, or less where its cgroup or one above it allows less.

Timing: a few files are read.
Model: sync, any thread.
Guarantee: never more than the machine has; a limit that this process is not shown is not known.
Failure: bubble.
"""

from pathlib import Path

import psutil

from resources.runtimes.cgroups.files import words
from resources.runtimes.cgroups.mounts import UNIFIED, own_directories

_MB = 1 << 20
_FILES = {UNIFIED: "memory.max", "memory": "memory.limit_in_bytes"}


def usable_ram_mb() -> float:
    """Return it in MB."""
    own = own_directories(
        Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    )
    found = [
        _limits(own[controller], name) for controller, name in _FILES.items() if controller in own
    ]
    return (
        min([psutil.virtual_memory().total, *(limit for limits in found for limit in limits)]) / _MB
    )


def _limits(directory: Path, name: str) -> list[int]:
    """Return the limits of a group and of those above it; the outermost may have none."""
    read = [words(each / name) for each in (directory, *directory.parents)]
    return [int(found[0]) for found in read if found and found[0].isdecimal()]
