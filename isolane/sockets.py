"""The sockets of a process, to find those that an execution left open."""

import contextlib
import gc
import os
import stat

_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")  # where systems list them


class Sockets:
    """The sockets that are open at its creation; a listing takes some tens of microseconds."""

    def __init__(self) -> None:
        self._before = _inodes()

    def left(self) -> int:
        """Return how many more are open now."""
        if _inodes() - self._before:
            gc.collect()  # a socket that only a cycle references was not left on purpose
            return len(_inodes() - self._before)
        return 0


def _inodes() -> set[int]:
    """Return the inodes of all open sockets that the system lists."""
    found = set()
    for number in _descriptors():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            status = os.fstat(number)
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


def _descriptors() -> list[int]:
    for folder in _DESCRIPTORS:
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir(folder)]  # noqa: PTH208 - paths cost more than the listing
    return []
