"""The environment that the kernel shows of this process: the block that its program was started with.

A forked runner has its zygote's. Its worker finds processes that it left by their HOME, so that must be its own.
"""

import ctypes
import os
from collections.abc import Collection
from typing import NamedTuple

_ENV_START, _ENV_END = 47, 48  # fields of /proc/self/stat behind the name


class BlockVariable(NamedTuple):
    """The place of a variable's value, which is the same in every fork."""

    address: int
    size: int

    def overwrite(self, value: str) -> None:
        """Write another value there; leave it if that is not as long."""
        written = os.fsencode(value)
        if len(written) == self.size:
            ctypes.memmove(self.address, written, self.size)


def find_variables(names: Collection[str]) -> list[BlockVariable]:
    """Return the places of those that this program was started with."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - no path to keep
        fields = file.read().rpartition(")")[2].split()
    at, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    found = []
    for entry in ctypes.string_at(at, end - at).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if os.fsdecode(name) in names:
            found.append(BlockVariable(at + len(name) + 1, len(value)))
        at += len(entry) + 1
    return found
