"""`python -m tests.integration.resources.runtimes.system_calls`: tries system calls, behind the filter or without it.

It reads the filter and the numbers of the calls as JSON, and prints the outcomes. Every argument is -1, or such that
the kernel itself refuses the call before it does anything. So outside this process, which has no terminal, nothing is
changed, also as root without the filter.
"""

import ctypes
import json
import mmap
import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isolane.sandbox import seccomp
from tests.integration.isolane.sandbox import everyday
from tests.integration.isolane.sandbox.calls import outcome, raw, set_no_new_privs

NAMESPACES = {
    "mount": 1 << 17, "cgroup": 1 << 25, "uts": 1 << 26, "ipc": 1 << 27, "user": 1 << 28, "pid": 1 << 29,
    "net": 1 << 30,
}  # fmt: skip
CLONE_SIGHAND = 0x800  # without CLONE_VM the kernel answers EINVAL and makes no process
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CHARACTER_DEVICE, BLOCK_DEVICE = 0o020666, 0o060666
ADDR_NO_RANDOMIZE = 0x0040000
F_SETLEASE, F_NOTIFY = 1024, 1026
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_HUGETLB = 0x01, 0x02, 0x20, 0x40000
RLIMIT_CORE = 4
NOWHERE = 1  # no address of this process
HIGH = 1 << 32  # a bit that the kernel does not read in an int, and a careless filter does
MAX_FAMILY = 50


def clones(numbers: Mapping[str, int]) -> dict[str, str]:
    """Try each new namespace, and none."""
    flags = {**NAMESPACES, "none": 0, "user with a high bit": NAMESPACES["user"] | HIGH}
    return {
        name: raw(numbers["clone"], flag | CLONE_SIGHAND, 0, 0, 0, 0)
        for name, flag in flags.items()
    }


def families(call: int) -> dict[str, str]:
    """Try every family of sockets; -1 as kind is refused by the kernel where the filter lets it through."""
    tried = {str(family): family for family in range(MAX_FAMILY)}
    tried["netlink with a high bit"] = socket.AF_NETLINK | HIGH
    return {name: raw(call, family, -1, 0, 0) for name, family in tried.items()}


def arguments(numbers: Mapping[str, int]) -> dict[str, str]:
    """Try calls that depend on an argument."""
    reader, _ = os.pipe()
    calls: dict[str, tuple[str, tuple[int, ...]]] = {
        "TIOCSTI": ("ioctl", (reader, TIOCSTI, 0)),
        "TIOCSTI with a high bit": ("ioctl", (reader, TIOCSTI | HIGH, 0)),
        "TIOCLINUX": ("ioctl", (reader, TIOCLINUX, 0)),
        "character device": ("mknodat", (-1, -1, CHARACTER_DEVICE, 0)),
        "block device": ("mknodat", (-1, -1, BLOCK_DEVICE, 0)),
        "old character device": ("mknod", (-1, CHARACTER_DEVICE, 0)),
        "old block device": ("mknod", (-1, BLOCK_DEVICE, 0)),
        "no randomisation": ("personality", (ADDR_NO_RANDOMIZE,)),
        "lease": ("fcntl", (-1, F_SETLEASE, 0)),
        "lease with a high bit": ("fcntl", (-1, F_SETLEASE | HIGH, 0)),
        "notice": ("fcntl", (-1, F_NOTIFY, 0)),
        "large pages": ("mmap", (0, 0, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0)),
        "core dumps": ("prlimit64", (0, RLIMIT_CORE, NOWHERE, 0)),
        "core dumps by the old call": ("setrlimit", (RLIMIT_CORE, NOWHERE)),
    }
    return {
        name: raw(numbers[call], *given) for name, (call, given) in calls.items() if call in numbers
    }


def run_machine_code(code: str) -> int:
    """Run machine code of x86_64 and return its result."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex(code))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


def foreign(kind: str) -> str:
    """Ask for our own process id by another architecture's call, in a thread: all threads are to die with it."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(ask_foreign(kind)), daemon=True)
    thread.start()
    thread.join(10)
    return found[0] if found else "the thread died"


def ask_foreign(kind: str) -> str:
    if kind == "x32":
        return raw((1 << 30) + 39)
    # mov eax, 20; int 0x80; ret
    return "ok" if run_machine_code("b814000000cd80c3") == os.getpid() else "another answer"


def capabilities() -> str:
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("CapEff")
    ]
    return line.split()[1]


def look(asked: Mapping[str, Any]) -> dict[str, Any]:
    numbers = asked["numbers"]
    return {
        "capabilities": capabilities(),
        "calls": {name: raw(number, *[-1] * 6) for name, number in numbers["refused"].items()},
        "unjudged": {str(number): raw(number, *[-1] * 6) for number in asked["unjudged"]},
        "clone3": raw(numbers["others"]["clone3"], *[-1] * 6),
        "clone": clones(numbers["others"]),
        "socket": families(numbers["others"]["socket"]),
        "socketpair": families(numbers["others"]["socketpair"]),
        "arguments": arguments(numbers["others"]),
        "usual personality": raw(numbers["others"]["personality"], 0),
        "shared memory": raw(numbers["others"]["mmap"], 0, 0, 0, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
        "private memory": raw(
            numbers["others"]["mmap"], 0, 0, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
        ),
        "limit of core dumps": raw(numbers["others"]["prlimit64"], 0, RLIMIT_CORE, 0, 0),
        "vsock": outcome(lambda: socket.socket(40, socket.SOCK_STREAM)),
        "netlink": outcome(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    }


def main() -> None:
    """Apply the filter if there is one, then do what was asked."""
    asked = json.load(sys.stdin)
    set_no_new_privs()
    if asked["program"]:
        seccomp.load(bytes.fromhex(asked["program"]))
    todo = {"look": lambda: look(asked), "everyday": everyday.failures}
    act = todo.get(asked["act"], lambda: foreign(asked["act"]))
    json.dump(act(), sys.stdout)


if __name__ == "__main__":
    main()
