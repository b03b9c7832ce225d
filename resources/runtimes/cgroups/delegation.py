"""Preparing a delegated cgroup of v2, so that groups with limits can be made in it.

A group of v2 either holds processes or gives controllers to groups inside it. So the worker moves itself into a leaf;
the leaf is shared by all workers of one unit. Other processes are moved, too, but only if systemd has marked the group
as delegated: then they all belong to the same unit.

Timing: some milliseconds, once.
Model: sync; several workers may do it at the same time.
Guarantee: idempotent; nothing is changed in a group that holds processes of others and is not marked.
Failure: raises NotDelegatedError with the reason in words.
"""

import contextlib
import os
from pathlib import Path

from resources.runtimes.cgroups import files
from resources.runtimes.cgroups.names import WORKER_LEAF

CONTROLLERS = ("memory", "pids", "cpu")
_TRIES = 10  # while processes that are not moved yet start others
_MARK = "user.delegate"


class NotDelegatedError(Exception):
    """The cgroup of this process is not for it to divide; the text says why."""


def prepare(own: Path) -> dict[str, Path]:
    """Return the controllers that groups of v2 can have, each with the directory for the groups."""
    base = own.parent if own.name == WORKER_LEAF else own
    offered = [each for each in CONTROLLERS if each in files.words(base / "cgroup.controllers")]
    if not os.access(base, os.W_OK) or not os.access(base / "cgroup.procs", os.W_OK):
        raise NotDelegatedError(f"{base} is not writable for this user")
    if not offered:
        raise NotDelegatedError(f"{base} has none of the controllers {', '.join(CONTROLLERS)}")
    try:
        _vacate(base)
        _enable(base, offered)
    except OSError as error:
        raise NotDelegatedError(str(error)) from error
    return dict.fromkeys(offered, base)


def _vacate(base: Path) -> None:
    """Move the processes of the base into the leaf."""
    if not (base / "cgroup.events").exists():
        return  # the root of the tree, where processes may stay
    for _ in range(_TRIES):
        found = files.members(base)
        if not found:
            return
        if set(found) - {os.getpid()} and not _is_marked(base):
            raise NotDelegatedError(f"other processes are in {base} too")
        _move(found, base / WORKER_LEAF)
    raise NotDelegatedError(f"the processes in {base} cannot be moved")


def _move(pids: list[int], leaf: Path) -> None:
    leaf.mkdir(exist_ok=True)
    for pid in filter(None, pids):
        with contextlib.suppress(ProcessLookupError):
            files.write(leaf / "cgroup.procs", pid)


def _is_marked(base: Path) -> bool:
    try:
        return os.getxattr(base, _MARK) == b"1"
    except OSError:
        return False


def _enable(base: Path, controllers: list[str]) -> None:
    """Give the controllers to the groups in the base; the workers beside this one may have done it."""
    for controller in controllers:
        files.write(base / "cgroup.subtree_control", f"+{controller}")
