"""The program of a zygote: the interpreter of this process, or a sealed copy of it where its file is the worker's own.

A process reaches the file of its own program by /proc/self/exe, past all mounts, and its owner may change its mode: a
step could make the worker's Python useless, or a way for others to become the worker's user. The owner of a copy in
memory may do the same, without any effect outside.

Timing: once in a worker, some tens of milliseconds for a copy.
Model: sync, any thread.
Guarantee: a step cannot change a file of the machine by the program that it runs in, or `is_safe` is false.
Failure: an interpreter that does not run as a copy is used as it is, and not safe.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
_TRY_SECONDS = 10.0
_CHUNK = 1 << 24


class Program(NamedTuple):
    """A file to execute."""

    path: str
    descriptors: tuple[int, ...] = ()  # that must be open for it in the new process
    is_safe: bool = True


@cache
def zygote_program() -> Program:
    """Return the program for zygotes of this process."""
    if not _is_own():
        return Program(sys.executable)
    with contextlib.suppress(OSError):
        copy = _sealed_copy(sys.executable)
        program = Program(f"/proc/self/fd/{copy}", (copy,))
        if _runs(program):
            return program
        os.close(copy)
    return Program(sys.executable, is_safe=False)


def _is_own() -> bool:
    """Say whether its file belongs to the user of sandboxes; those of root have other users."""
    return os.geteuid() != 0 and Path(sys.executable).stat().st_uid == os.geteuid()


def _sealed_copy(path: str) -> int:
    copy = os.memfd_create("python", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with Path(path).open("rb") as file:
            while os.sendfile(copy, file.fileno(), None, _CHUNK):
                pass
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(copy)
        raise
    return copy


def _runs(program: Program) -> bool:
    """Say whether it finds its libraries: some are looked for beside the program."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", "import ctypes"],
            executable=program.path,
            pass_fds=program.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
