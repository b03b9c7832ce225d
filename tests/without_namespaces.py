"""`python -m tests.without_namespaces COMMAND …`: the command on a machine that refuses user namespaces.

A filter for system calls stands for the machine, as the seccomp profile of a container does: `clone` and `unshare` with
a new user namespace end with EPERM, for root, too. It holds for all that the command starts, and needs no privilege.
"""

import errno
import os
import sys

import pyseccomp

PREFIX = (sys.executable, "-m", "tests.without_namespaces")
_CLONE_NEWUSER = 0x10000000


def forbid_user_namespaces() -> None:
    """Refuse them to this process and all that it starts, for ever."""
    policy = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    new_user = (pyseccomp.MASKED_EQ, _CLONE_NEWUSER, _CLONE_NEWUSER)
    for call in ("clone", "unshare"):
        policy.add_rule(pyseccomp.ERRNO(errno.EPERM), call, pyseccomp.Arg(0, *new_user))
    # No filter can read its flags. As if it did not exist, so that programs take clone.
    policy.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    policy.load()


if __name__ == "__main__":
    forbid_user_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])
