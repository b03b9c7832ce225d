"""Run by path in a new process, never imported: `launch.py PARENT SIGNAL UID GID COMMAND…`.

Switches to another user if one is given ("-" for none), asks the kernel for SIGNAL at the death of
PARENT, and executes COMMAND. In this order, because a change of user clears that request. A program
rather than a `preexec_fn`, because Python code between fork and exec of a threaded process can
deadlock; it costs about 15 ms per start. All imports come before the change of user, which may not be
able to read the interpreter's files; so COMMAND is a path, because a search for it would import more.

Timing: before COMMAND, which takes the place of this process.
Model: sync, single-threaded.
Guarantee: at-most-once; if PARENT is gone, COMMAND is not run.
Failure: one line and a non-zero exit code.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
# The interpreter ignores the first two, and nohup or a background shell others; that is inherited.
RESTORED = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
)


def main(parent: str, death_signal: str, uid: str, gid: str, *command: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)
    if gid != "-":
        os.setgroups([])
        os.setgid(int(gid))
    if uid != "-":
        os.setuid(int(uid))
    if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    # The parent may have died before the request; then the kernel sends no signal.
    if os.getppid() == int(parent):
        os.execv(command[0], command)  # noqa: S606 - the purpose of this program


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as failure:
        sys.exit(f"cannot run {sys.argv[5:6]}: {failure}")
