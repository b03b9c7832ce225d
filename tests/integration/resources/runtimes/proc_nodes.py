"""A node that looks into other processes, and at what its own may do."""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isolane import NodeContext, node


@node("proc.look_into")
def look_into(ctx: NodeContext, *, pids: list[int]) -> dict[str, Any]:
    """Return what opens of other processes, and what this one may do."""
    opened = [f"{pid}/{what}" for pid in pids for what, look in LOOKS.items() if _opens(look, pid)]
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    rights = {name: status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "NoNewPrivs")}
    return {"opened": opened, "uid": os.getuid(), **rights}


def _read(pid: int, what: str) -> bytes:
    with Path(f"/proc/{pid}/{what}").open("rb") as file:
        return file.read(1)


def _read_memory(pid: int) -> None:
    """Ask for a byte at address 0, which is never there: what is refused is refused before that is found."""
    libc = ctypes.CDLL(None, use_errno=True)
    nothing = (ctypes.c_void_p * 2)(0, 1)
    libc.process_vm_readv(pid, nothing, 1, nothing, 1, 0)
    if ctypes.get_errno() == errno.EPERM:
        raise PermissionError(errno.EPERM, "process_vm_readv")


LOOKS: dict[str, Callable[[int], Any]] = {
    "environ": lambda pid: _read(pid, "environ"),
    "maps": lambda pid: _read(pid, "maps"),
    "mem": lambda pid: Path(f"/proc/{pid}/mem").open("rb").close(),
    "fd": lambda pid: [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()],  # noqa: PTH115
    "memory": _read_memory,
}


def _opens(look: Callable[[int], Any], pid: int) -> bool:
    try:
        look(pid)
    except PermissionError:
        return False
    return True
