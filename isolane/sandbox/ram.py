"""The RAM of all processes in a sandbox, for machines where no cgroup counts it.

A page that several processes map is charged once. The pages that the runner shares with its zygote from the start are
not charged; a run that gives them up may share as much of its own among its processes instead.

Timing: about a millisecond for each process, and for each 100 MB of it.
Model: in the guard, which sees the processes of its own namespace only.
Guarantee: best-effort; a run may exceed its limit between two samples; what no process maps is missed.
Failure: a process that ends meanwhile counts nothing; another error bubbles, and the guard ends the sandbox.
"""

import contextlib
import os
from collections.abc import Iterable
from typing import NamedTuple

_KB_PER_MB = 1024
_SOCKET_KB = 512  # that the kernel may keep for one; it does not tell how much it does
_PRIVATE = (b"Private_Clean:", b"Private_Dirty:")
_SHARES = (b"Pss_Anon:", b"SwapPss:")  # a page of n processes counts one nth for each
_BESIDE = (b"Pss_Shmem:", b"Private_Hugetlb:", b"Shared_Hugetlb:")
_INHERITED = (b"Anonymous:", b"Swap:")
# Of a process that is closed to its guard:
_RESIDENT = (b"RssAnon:", b"VmSwap:")
_RESIDENT_BESIDE = (b"RssShmem:", b"HugetlbPages:")


class ProcessRam(NamedTuple):
    """The memory of one process, in KB."""

    private: int = 0  # that it alone maps
    shares: int = 0  # its share of all anonymous memory that it maps
    beside: int = 0  # shared by intent, and huge pages


def charged_kb(processes: Iterable[ProcessRam], *, inherited_kb: int) -> int:
    """Return the memory that these processes have beside what the first one inherited. Pure.

    Their shares of inherited pages add up to all of these at most, however many processes and other runs map them.
    """
    found = list(processes)
    private, shares = sum(each.private for each in found), sum(each.shares for each in found)
    return max(private, shares - inherited_kb) + sum(each.beside for each in found)


def inherited_kb() -> int:
    """Return the memory that a fork of this process would share with it."""
    return sum(_sums("/proc/self/smaps_rollup", _INHERITED))


def used_ram_mb(files: str, *, inherited_kb: int) -> float:
    """Return the memory of all other processes, of the files in this folder, and of sockets, as if all were full."""
    status = os.statvfs(files)
    written = (status.f_blocks - status.f_bfree) * status.f_frsize / _KB_PER_MB
    own = str(os.getpid())
    others = [name for name in os.listdir("/proc") if name.isdecimal() and name != own]
    sockets = sum(_sums("/proc/net/sockstat", (b"sockets:",), column=2)) * _SOCKET_KB
    charged = charged_kb(map(_ram_of, others), inherited_kb=inherited_kb)
    return (written + sockets + charged) / _KB_PER_MB


def _ram_of(pid: str) -> ProcessRam:
    """Return the memory of a process; it is its threads' if its first one has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return _ram_at(f"/proc/{pid}")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                return _ram_at(f"/proc/{pid}/task/{thread}")
    return ProcessRam()


def _ram_at(place: str) -> ProcessRam:
    """Return the memory; all that it maps is its share if it hides it (PR_SET_DUMPABLE), as a new runner does."""
    try:
        return ProcessRam(*_sums(f"{place}/smaps_rollup", _PRIVATE, _SHARES, _BESIDE))
    except PermissionError:
        resident, beside = _sums(f"{place}/status", _RESIDENT, _RESIDENT_BESIDE)
        return ProcessRam(shares=resident, beside=beside)


def _sums(path: str, *kinds: tuple[bytes, ...], column: int = 1) -> list[int]:
    """Return, for each kind, the sum of the lines with these names."""
    with open(path, "rb") as file:
        lines = file.readlines()
    return [
        sum(int(line.split()[column]) for line in lines if line.startswith(names))
        for names in kinds
    ]
