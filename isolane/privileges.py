"""The privileges that a process drops before it runs foreign code.

As root, a step could otherwise read the worker's memory and every file, whatever its permissions.

Timing: once, while there is one thread.
Model: system calls of Linux.
Guarantee: neither this process nor one that it starts gets a dropped capability again; its user stays the same.
Failure: bubble, if the kernel refuses; on systems other than Linux nothing happens.
"""

import ctypes
import sys
from collections.abc import Collection

from isolane.c_library import c_library

# Those with which a process may enter users of its choice into a new user namespace, and drop the rest there.
CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 6, 7, 8
_PR_SET_DUMPABLE = 4
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


def drop_capabilities(*, keep: Collection[int] = ()) -> None:
    """Drop all capabilities but those to keep, and every way to get one by starting a program.

    What an ordinary user does not have is not kept either.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = c_library()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_HIGHEST + 1):
        # Fails for an ordinary user, who has none, and behind the last one that the kernel knows.
        if capability not in keep and libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    if keep and libc.capget(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities of this process cannot be read")
    for word, part in enumerate(sets):
        kept = sum(1 << number % 32 for number in keep if number // 32 == word) & part.permitted
        part.effective, part.permitted, part.inheritable = kept, kept, 0
    if libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities of this process cannot be dropped")


def set_dumpable(*, dumpable: bool) -> None:
    """Open or close this process to others of the same user: its memory, descriptors and environment."""
    if sys.platform.startswith("linux"):
        c_library().prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)
