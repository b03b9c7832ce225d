"""The sockets of a process, to find those that an execution left open."""

import contextlib
import gc
import os
import stat

_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")  # where systems list them


class Sockets:
    """Those that are open when it is made; a look takes some tens of microseconds."""

    def __init__(self) -> None:
        self._before = _inodes()

    def left(self) -> int:
        """How many more are open now."""
        if _inodes() - self._before:
            gc.collect()  # what only a cycle still holds was not left on purpose
            return len(_inodes() - self._before)
        return 0


def _inodes() -> set[int]:
    """As far as the system tells."""
    found = set()
    for number in _descriptors():
        with contextlib.suppress(OSError):  # the one that the listing itself had open
            status = os.fstat(number)
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


def _descriptors() -> list[int]:
    for folder in _DESCRIPTORS:
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir(folder)]  # noqa: PTH208 - paths cost more than the look
    return []
