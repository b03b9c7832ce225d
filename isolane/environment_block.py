"""The environment that the kernel shows of this process: the block that its program was started with.

A forked runner has its zygote's. Its worker finds processes that it left by their HOME, so that must be its own.
"""

import ctypes
import os

_ENV_START, _ENV_END = 47, 48  # fields of /proc/self/stat behind the name


def overwrite(name: str, value: str) -> None:
    """Write a variable over its old value, which must be as long; leave it if there is none such."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - no path to keep
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    begin = f"{name}=".encode()
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        if entry.startswith(begin) and len(entry) == len(begin) + len(os.fsencode(value)):
            ctypes.memmove(at + len(begin), os.fsencode(value), len(os.fsencode(value)))
            return
        at += len(entry) + 1
