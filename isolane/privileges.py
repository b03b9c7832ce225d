"""The privileges that a runner drops before it imports foreign code.

As root, a step could otherwise read the worker's memory and every file, whatever its permissions.

Timing: once, while there is one thread.
Model: system calls of Linux.
Guarantee: neither this process nor one that it starts gets a capability again; its user stays the same.
Failure: bubble, if the kernel refuses; on systems other than Linux nothing happens.
"""

import ctypes
import sys

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_VERSION_3 = 0x20080522
_HIGHEST = 63  # the last capability that the call below has room for


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop_capabilities() -> None:
    """Drop all capabilities, and every way to get one by starting a program."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_HIGHEST + 1):  # fails for an ordinary user, who has none
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), ctypes.byref((_Sets * 2)())) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities of this process cannot be dropped")
