"""Raw system calls of a probe, and their outcomes as words."""

import ctypes
import errno
from collections.abc import Callable
from typing import Any

_PR_SET_NO_NEW_PRIVS = 38
_LIBC = ctypes.CDLL(None, use_errno=True)


def set_no_new_privs() -> None:
    """Do as the set-up of a sandbox does before its walls; capabilities stay, so that only the wall refuses."""
    assert _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def raw(number: int, *arguments: int) -> str:
    """Make a system call; return `ok` or the name of its error."""
    longs = [ctypes.c_long(argument) for argument in arguments]
    if _LIBC.syscall(ctypes.c_long(number), *longs) >= 0:
        return "ok"
    return errno.errorcode[ctypes.get_errno()]


def outcome(action: Callable[[], Any]) -> str:
    """Do it; return `ok`, the name of its error, or the exception."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))
    except Exception as error:  # noqa: BLE001 - reported as an outcome
        return repr(error)
    return "ok"
