"""A fork into new namespaces, in one system call.

`unshare` needs a second fork for the process namespace, which costs as much again. A raw `clone` leaves the id of the
parent's thread in the C library's memory; the kernel writes the new one there, at the address that it knows itself.
What `os.register_at_fork` knows does not run: that costs as much as the namespaces, and its place is the next fork.

Timing: a fork, and about a millisecond for the namespaces.
Model: only in a process with one thread.
Guarantee: the child is a copy of this process; foreign code runs only in a fork of it, by `os.fork`.
Failure: SetupError, and there is no child.
"""

import ctypes
import os
import platform
import signal

from isolane.sandbox.syscalls import SetupError, libc

NEWNS, NEWUTS, NEWIPC = 0x00020000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
_CHILD_CLEARTID, _CHILD_SETTID = 0x00200000, 0x01000000
_PR_GET_TID_ADDRESS = 40
_CLONE = {"x86_64": 56, "aarch64": 220}


def clone(namespaces: int) -> int:
    """Fork into new namespaces; return 0 in the child, its id in the parent."""
    address = ctypes.c_void_p()
    flags = namespaces | signal.SIGCHLD
    if libc().prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0 and address.value:
        flags |= _CHILD_SETTID | _CHILD_CLEARTID
    tid = ctypes.c_void_p(address.value)
    # The order of the last two arguments is the machine's.
    last = (tid, None) if platform.machine() == "x86_64" else (None, tid)
    number, syscall = _CLONE[platform.machine()], libc().syscall
    arguments = (number, ctypes.c_ulong(flags), None, None, *last)
    pid: int = syscall(*arguments)
    if pid < 0:
        raise SetupError("namespaces", ctypes.get_errno(), "making the namespaces")
    return pid


def map_user(pid: int | str, *, inside: int, outside_user: int, outside_group: int) -> None:
    """Give the user namespace of a process its only user and group."""
    # In this order: without CAP_SETGID a map of groups is taken only once setgroups is denied.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside} {outside_user} 1"),
        ("gid_map", f"{inside} {outside_group} 1"),
    ):
        try:
            descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SetupError("uid_map", error.errno or 0, f"writing {name}") from None
