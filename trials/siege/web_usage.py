"""Resource usage of web, sampled from outside.

Timing: a sample takes some milliseconds.
Model: sync.
Guarantee: best-effort; a process that ends meanwhile counts as nothing.
Failure: none; what cannot be read is not counted.
"""

from dataclasses import dataclass, field
from pathlib import Path

import psutil

UNNAMED = " (deleted)"


@dataclass(kw_only=True)
class WebUsage:
    """The maximum of all samples."""

    rss_bytes: int = 0
    descriptors: int = 0
    unnamed_bytes: int = 0  # deleted but open files: request bodies on disk
    pids: set[int] = field(default_factory=set)
    log_bytes: dict[str, int] = field(default_factory=dict)  # growth of each log

    def sample(self, pid: int | None) -> None:
        """Sample web and its children."""
        if pid is None:
            return
        self.pids.add(pid)
        processes = _with_children(pid)
        self.rss_bytes = max(self.rss_bytes, sum(_rss(one) for one in processes))
        files = [_open_files(one.pid) for one in processes]
        self.descriptors = max(self.descriptors, *(number for number, _ in files), 0)
        self.unnamed_bytes = max(self.unnamed_bytes, sum(size for _, size in files))


def _with_children(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _open_files(pid: int) -> tuple[int, int]:
    """Return the number of descriptors, and the bytes of deleted files that are open."""
    number = size = 0
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            number += 1
            size += _unnamed_size(link)
    except OSError:  # it has ended
        pass
    return number, size


def _unnamed_size(link: Path) -> int:
    try:
        target = str(link.readlink())
        return link.stat().st_size if target.endswith(UNNAMED) else 0
    except OSError:  # closed meanwhile
        return 0
