"""The filter of system calls that a sandboxed process puts on itself.

The worker compiles it; here it is only given to the kernel, so that a runtime needs no library.

Timing: once, as the last wall, while there is one thread, to which it applies.
Model: one system call of Linux.
Guarantee: the filter holds for this process and all that it starts, and nothing takes it away.
Failure: bubble, if the kernel refuses; then nothing is filtered.
"""

import ctypes
import errno
import os

from isolane.c_library import c_library

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION = 8  # bytes
_MAX_INSTRUCTIONS = 4096  # of the kernel; the field below would cut a larger number


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def load(program: bytes) -> None:
    """Filter all further system calls by compiled BPF instructions; `no_new_privs` must be set."""
    length, rest = divmod(len(program), _INSTRUCTION)
    if rest or not 0 < length <= _MAX_INSTRUCTIONS:
        text = f"{len(program)} bytes are no filter of 1 to {_MAX_INSTRUCTIONS} instructions"
        raise OSError(errno.EINVAL, text)
    given = ctypes.byref(_Program(length, program))
    if c_library().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, given, 0, 0) != 0:
        raise _refusal(ctypes.get_errno())


def _refusal(code: int) -> OSError:
    if code == errno.EACCES:
        return OSError(code, "a filter for system calls needs no_new_privs, which is not set")
    return OSError(code, f"the kernel refuses the filter for system calls: {os.strerror(code)}")
