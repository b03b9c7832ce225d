"""Landlock: the paths that a sandboxed process may use, as a second wall behind its mounts.

Timing: once, after the mounts, which it forbids to change, and while there is one thread, to which it applies.
Model: system calls of Linux.
Guarantee: the rules hold for this process and all that it starts, and can only be made stricter.
Failure: bubble, if the kernel refuses; then nothing is restricted. A kernel without Landlock has `abi()` 0.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Sequence

from isolane.c_library import c_library

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_VERSION = 1  # flag of the first call: return the ABI and make nothing
_PATH_BENEATH = 1

# File system rights, by the bit that the kernel gives them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV, _RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 15, 1 << 16
_OF_FIRST_ABI = (1 << 13) - 1  # from executing to making symbolic links
RESOLVE_UNIX_ABI = 9  # from then on Unix sockets are reached beneath writable paths only
_BY_ABI = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV, RESOLVE_UNIX_ABI: _RESOLVE_UNIX}
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX

_SCOPE_ABI = 6
_SCOPES = 1 << 0 | 1 << 1  # abstract Unix sockets, signals


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),  # none: a runtime needs loopback
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 if it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    version: int = c_library().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(version, 0)


def restrict(*, read: Sequence[str], write: Sequence[str]) -> None:
    """Allow files beneath these paths only; `no_new_privs` must be set. Paths that do not exist are skipped.

    Beneath `read` files may be read and executed, beneath `write` everything but executed. Rights add up: what lies
    beneath a path of each may be executed. Landlock covers the start of a program, not the code that a program maps: a
    script or a shared library beneath `write` can be given to an interpreter or loaded. Descriptors that are open stay
    usable; stat, chmod, chown and chdir are not covered.

    From ABI 6 on, signals and abstract Unix sockets reach no process outside. TCP is not restricted.
    """
    version = abi()
    rights = _rights(version)
    ruleset = _create(rights, _SCOPES if version >= _SCOPE_ABI else 0)
    try:
        _allow(ruleset, rights & (_EXECUTE | _READ_FILE | _READ_DIR), read)
        _allow(ruleset, rights & ~_EXECUTE, write)
        _check(c_library().syscall(_RESTRICT_SELF, ruleset, 0), "the rules cannot be applied")
    finally:
        os.close(ruleset)


def _rights(version: int) -> int:
    """Return the file system rights that this ABI knows and we know: a kernel refuses others."""
    if version < 1:
        return 0
    return _OF_FIRST_ABI | sum(right for since, right in _BY_ABI.items() if since <= version)


def _create(rights: int, scopes: int) -> int:
    """Return a descriptor of a rule set; an older kernel takes the larger structure if the rest of it is zero."""
    asked = _Ruleset(rights, 0, scopes)
    size = ctypes.c_size_t(ctypes.sizeof(asked))
    made: int = c_library().syscall(_CREATE_RULESET, ctypes.byref(asked), size, 0)
    _check(made, "this kernel makes no rule set")
    return made


def _allow(ruleset: int, rights: int, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            _add_rule(ruleset, rights, parent, path)
        finally:
            os.close(parent)


def _add_rule(ruleset: int, rights: int, parent: int, path: str) -> None:
    """Give rights beneath an open path; the kernel refuses rights of directories on a file."""
    if not stat.S_ISDIR(os.fstat(parent).st_mode):
        rights &= _OF_FILES
    rule = ctypes.byref(_Beneath(rights, parent))
    _check(c_library().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"no rule for {path}")


def _check(result: int, refusal: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {refusal}: {os.strerror(code)}")
