"""`python -m tests.integration.isolane.sandbox.loading`: loads a small filter and tells what it does."""

import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

from isolane.sandbox import seccomp
from tests.integration.isolane.sandbox.calls import outcome, set_no_new_privs

GETPPID = {"x86_64": 110, "aarch64": 173}[os.uname().machine]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = (
    0x7FFF0000,
    0x00050000 | 42,
)  # 42: an error that the kernel never gives for this call


def instruction(code: int, constant: int, *, skip: int = 0) -> bytes:
    """Make an instruction; a jump skips so many if it compares unequal."""
    return struct.pack("=HBBI", code, 0, skip, constant)


NO_PARENT = b"".join([
    instruction(LOAD, 0),  # the number of the call
    instruction(JUMP_EQUAL, GETPPID, skip=1),
    instruction(RETURN, REFUSE),
    instruction(RETURN, ALLOW),
])  # fmt: skip
EVERYTHING = instruction(RETURN, ALLOW)


def asks_in_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(os.getppid()))
    thread.start()
    thread.join()
    return found[0]


def asks_in_child() -> int:
    command = [sys.executable, "-Sc", "import os; print(os.getppid())"]
    return int(subprocess.check_output(command))


def answers() -> dict[str, int]:
    """Ask for the parent everywhere."""
    return {"self": os.getppid(), "thread": asks_in_thread(), "child": asks_in_child()}


def main() -> None:
    """Load as asked: after `no_new_privs` or without it."""
    before = answers()
    if sys.argv[1] == "prepared":
        set_no_new_privs()
    loaded = outcome(lambda: seccomp.load(NO_PARENT))
    nonsense = outcome(lambda: seccomp.load(b"\xff" * 8))
    lifted = outcome(lambda: seccomp.load(EVERYTHING))
    mode = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "Seccomp:" in line
    ]
    told = {"loaded": loaded, "nonsense": nonsense, "lifted": lifted, "mode": mode[0].split()[1]}
    json.dump({**told, "before": before, "after": answers()}, sys.stdout)


if __name__ == "__main__":
    main()
