"""System calls of Linux that Python 3.11 has no function for.

Timing: microseconds each.
Model: sync; raw numbers for x86_64 and aarch64, which differ only in calls older than 2019.
Guarantee: a refused call raises and never passes for a success.
Failure: SetupError names the step of the set-up and the kernel's reason.
"""

import ctypes
import functools
import os
import platform

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_MOUNT_SETATTR = 442

AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_OPEN_TREE_CLOEXEC = os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 0x4
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 0x1, 0x2, 0x4
_PR_SET_PDEATHSIG = 1


class SetupError(Exception):
    """One step of the set-up of a sandbox failed, mostly because the kernel refused it."""

    def __init__(self, step: str, error: int, what: str = "") -> None:
        self.step = step
        self.errno = error
        reason = f": {os.strerror(error)}" if error else ""  # 0 where the kernel was not asked
        super().__init__(f"{what or step}{reason}")


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library; it keeps the interpreter's lock, since there is one thread."""
    return ctypes.PyDLL(None, use_errno=True)


def mount(kind: str, target: str, flags: int = 0, options: str = "") -> None:
    """Mount a new file system, such as tmpfs or proc."""
    done = libc().mount(
        kind.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(done, kind, f"mounting {kind}")


def make_private() -> None:
    """Keep what is mounted from now on out of all other mount namespaces."""
    done = libc().mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    _check(done, "mount", "making the mounts private")


def clone_tree(path: str) -> int:
    """Return a descriptor of a detached copy of the mounts at this path; `protect_tree` makes it read-only."""
    tree: int = libc().syscall(
        _OPEN_TREE,
        AT_FDCWD,
        os.fsencode(path),
        _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE,
    )
    _check(tree, "bind", f"opening {path}")
    return tree


def protect_tree(tree: int, *, devices: bool = False) -> None:
    """Make a detached copy read-only, without setuid and, unless it is one, without devices."""
    flags = _ATTR_RDONLY | _ATTR_NOSUID | (0 if devices else _ATTR_NODEV)
    attributes = _MountAttributes(flags, 0, 0, 0)
    done = libc().syscall(
        _MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, ctypes.byref(attributes), 32
    )
    _check(done, "bind", "making a mount read-only")


def attach_tree(tree: int, target: str) -> None:
    """Mount a detached copy here."""
    done = libc().syscall(
        _MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH
    )
    _check(done, "bind", f"mounting {target}")


def make_read_only(path: str) -> None:
    """Make the one mount at this path read-only."""
    attributes = _MountAttributes(_ATTR_RDONLY, 0, 0, 0)
    done = libc().syscall(
        _MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), 0, ctypes.byref(attributes), 32
    )
    _check(done, "mount", f"making {path} read-only")


def pivot_here() -> None:
    """Make the working directory, a mount, the root, and detach the old one."""
    _check(libc().syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _check(libc().umount2(b".", _MNT_DETACH), "pivot_root", "detaching the old root")
    os.chdir("/")


def set_parent_death_signal(number: int) -> None:
    """Get this signal when the thread that made this process ends."""
    _check(libc().prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def _check(returned: int, step: str, what: str = "") -> None:
    if returned < 0:
        raise SetupError(step, ctypes.get_errno(), what)
