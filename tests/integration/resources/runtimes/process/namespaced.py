"""`python -m …process.namespaced`: as root of a user namespace with few users, tries the level and runs one step.

It tells that it is in its namespace, and waits until its users are mapped. Then it prints the level's availability and,
if there is any, the status of a step.
"""

import ctypes
import json
import os
import sys
import threading
import time

from isolane.sandbox.clone import NEWUSER
from resources.runtimes.base import RunIdentity
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import PACKAGES, a_run
from tests.placements import a_placement


def main() -> None:
    """Become root of a namespace, try, print."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    backend = ProcessBackend(level="process", size=1, packages=PACKAGES)
    try:
        found = backend.availability()
        told = {"ok": found.ok, "reason": found.reason}
        json.dump(told | ({"status": _status(backend)} if found.ok else {}), sys.stdout)
    finally:
        backend.stop()


def _status(backend: ProcessBackend) -> str:
    runtime = backend.start(a_placement(), identity=RunIdentity(tenant="acme"))
    try:
        runtime.open()
        result = runtime.run(
            a_run("test.identity"),
            deadline=time.monotonic() + 30,
            cancelled=threading.Event(),
            on_frame=lambda _: None,
        )
    finally:
        runtime.close(5)
    return result.status


if __name__ == "__main__":
    main()
