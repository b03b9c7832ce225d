"""`python -m tests.integration.resources.runtimes.process.obstructed OBSTACLE`: tries the levels where one is refused.

It puts the obstacle into namespaces of its own, so that the machine stays as it is, and prints what came of it.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from resources.runtimes.base import RuntimeBackend, RuntimeStartError
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import Driver
from tests.placements import ACME, a_placement

PACKAGES = ["tests.nodes"]
NEWUSER, NEWNS = 0x10000000, 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(returned: int) -> None:
    if returned != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _enter(namespaces: int) -> None:
    """Enter new namespaces as the user that we are; root needs no new users to be allowed to mount."""
    user, group = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(namespaces))
    if namespaces & NEWUSER:
        maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, text in maps.items():
            Path(f"/proc/self/{name}").write_text(text)


def forbid_namespaces() -> None:
    """Let nobody here make a user namespace."""
    _enter(NEWUSER)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def mask_proc() -> None:
    """Cover a part of /proc, as containers do."""
    _enter(NEWNS if os.geteuid() == 0 else NEWUSER | NEWNS)
    _check(_LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))
    _check(_LIBC.mount(b"/dev/null", b"/proc/version", None, ctypes.c_ulong(MS_BIND), None))


OBSTACLES: dict[str, Callable[[], None]] = {"namespaces": forbid_namespaces, "proc": mask_proc}


def _run(backend: RuntimeBackend) -> str:
    """Run a step all the same; return its output, or why there is none."""
    try:
        return _output(backend)
    except RuntimeStartError as error:
        return str(error)


def _output(backend: RuntimeBackend) -> str:
    """Return it, or the message of the step; a sandbox that fails early raises."""
    runtime = backend.start(a_placement(), identity=ACME)
    try:
        runtime.open()
        result = Driver(runtime).run("test.add", {"a": 1})
    finally:
        runtime.close(5)
    return result.message or f"output {result.output}"


def main() -> None:
    """Obstruct, try, print."""
    OBSTACLES[sys.argv[1]]()
    process, shared = (
        ProcessBackend(level="process", size=1, packages=PACKAGES),
        SharedBackend(level="shared", size=1, packages=PACKAGES),
    )
    try:
        found = process.availability()
        told = {
            "ok": found.ok,
            "reason": found.reason,
            "run": {backend.level: _run(backend) for backend in (process, shared)},
        }
    finally:
        for backend in (process, shared):
            backend.stop()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
