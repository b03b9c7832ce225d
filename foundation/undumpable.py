"""Close this process to other processes of the same user, such as steps of runs.

From then on neither `/proc/<pid>/environ`, `mem` and `fd` nor a debugger opens to processes without CAP_SYS_PTRACE.
After an exec the process is open again.

Timing: before the first secret is read.
Model: one system call, for all threads.
Guarantee: no other process without CAP_SYS_PTRACE can read it, and no core dump is written.
Failure: without such a system call, nothing happens.
"""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Make this process not dumpable; repeatable."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
