"""Reading and writing the files of cgroups.

Timing: some microseconds each.
Model: sync, any thread; one system call writes one value, as the kernel wants it.
Guarantee: a value is written whole or not at all.
Failure: a refused write raises OSError with the file's name; a file that the kernel does not have reads as empty.
"""

import os
from pathlib import Path


def write(path: Path, value: str | int) -> None:
    """Write a value to a file that exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)


def words(path: Path) -> list[str]:
    """Return the words of a file; none if it does not exist."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read().decode("ascii").split()
    except FileNotFoundError:
        return []


def number(path: Path) -> int:
    """Return the number in a file; 0 if it does not exist."""
    return int((words(path) or ["0"])[0])


def counters(path: Path) -> dict[str, int]:
    """Return the numbers of a file with lines of a name and a number."""
    found = words(path)
    return {name: int(value) for name, value in zip(found[::2], found[1::2], strict=True)}


def members(directory: Path) -> list[int]:
    """Return the ids of the processes in a group; 0 is one that this process cannot see."""
    return [int(word) for word in words(directory / "cgroup.procs")]
