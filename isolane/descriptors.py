"""Copies of descriptors 0, 1 and 2, from which they are restored, whatever steps did to them."""

import errno
import fcntl
import os
from typing import NamedTuple

_COPIES_FROM = 100  # beyond those that a step closes or replaces by accident


def make_room() -> None:
    """Enlarge the table of descriptors; with several threads the kernel would wait for some milliseconds."""
    os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _COPIES_FROM))


class _Kept(NamedTuple):
    copy: int
    file: tuple[int, int]
    flags: int


class Descriptors:
    """The copies; programs that steps start do not inherit them."""

    def __init__(self) -> None:
        self._kept = {number: _keep(number) for number in (0, 1, 2)}

    def restore(self) -> None:
        """Restore the descriptors; OSError if a copy itself is gone."""
        for number, kept in self._kept.items():
            if _file(kept.copy) != kept.file:
                raise OSError(errno.EBADF, f"the copy of descriptor {number} is another file")
            # Unconditionally: a comparison would take as long, and not see every change.
            os.dup2(kept.copy, number)
            if fcntl.fcntl(number, fcntl.F_GETFL) != kept.flags:
                fcntl.fcntl(number, fcntl.F_SETFL, kept.flags)


def _keep(number: int) -> _Kept:
    copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _COPIES_FROM)
    return _Kept(copy=copy, file=_file(copy), flags=fcntl.fcntl(copy, fcntl.F_GETFL))


def _file(number: int) -> tuple[int, int]:
    found = os.fstat(number)
    return found.st_dev, found.st_ino
