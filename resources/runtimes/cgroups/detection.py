"""Finding out whether and how this process can make cgroups.

Timing: some milliseconds, once when a worker starts.
Model: sync; in v2 the process is moved into a leaf of its cgroup, so do it before starting others.
Guarantee: what is found was tried: a group was made and removed with each controller.
Failure: never raised; the reason is in the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isolane.limits import RunLimits
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.cgroups.delegation import CONTROLLERS, NotDelegatedError, prepare
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.cgroups.mounts import UNIFIED, own_directories
from resources.runtimes.cgroups.tree import Cgroups
from resources.runtimes.cgroups.v1 import V1Group
from resources.runtimes.cgroups.v2 import V2Group

_V1 = ("memory", "pids", "cpu", "cpuacct")
_TRIED = RunLimits(cpu=1, ram_mb=64, processes=16)
_WAY_OUT = "run the worker in a systemd unit with Delegate=yes, alone or with its own processes"


@dataclass(frozen=True, kw_only=True, slots=True)
class CgroupFinding:
    """The groups that can be made, and why none or not all can."""

    cgroups: Cgroups | None
    reason: str = ""


def find_cgroups(process: Path = Path("/proc/self")) -> CgroupFinding:
    """Look for cgroups of v2, then of v1, that this process may divide."""
    try:
        own = own_directories(
            (process / "cgroup").read_text(encoding="utf-8"),
            (process / "mountinfo").read_text(encoding="utf-8"),
        )
    except OSError as error:
        return CgroupFinding(cgroups=None, reason=f"cgroups cannot be read: {error}")
    v2 = _find_v2(own)
    if v2.cgroups is not None:
        return v2
    v1 = _find_v1(own)
    if v1.cgroups is not None:
        return v1
    return CgroupFinding(cgroups=None, reason=f"v2: {v2.reason}; v1: {v1.reason}; {_WAY_OUT}")


def _find_v2(own: Mapping[str, Path]) -> CgroupFinding:
    if UNIFIED not in own:
        return CgroupFinding(
            cgroups=None, reason="not mounted, or not with the group of this process"
        )
    try:
        bases = prepare(own[UNIFIED])
    except NotDelegatedError as error:
        return CgroupFinding(cgroups=None, reason=str(error))
    missing = [f"no controller {each}" for each in CONTROLLERS if each not in bases]
    return _try(V2Group, bases, missing)


def _find_v1(own: Mapping[str, Path]) -> CgroupFinding:
    bases = {each: own[each] for each in _V1 if each in own}
    missing = [f"no hierarchy of {each} is mounted" for each in _V1 if each not in own]
    return _try(V1Group, bases, missing)


def _try(kind: type[RunGroup], bases: Mapping[str, Path], missing: list[str]) -> CgroupFinding:
    """Keep the controllers with which a group can be made."""
    reasons, usable = list(missing), {}
    for controller, base in bases.items():
        try:
            Cgroups(kind, {controller: base}).create(_TRIED).remove()
            usable[controller] = base
        except RuntimeStartError as error:
            reasons.append(str(error))
    # Time that is only counted is no limit.
    cgroups = Cgroups(kind, usable)
    return CgroupFinding(cgroups=cgroups if cgroups.kept else None, reason="; ".join(reasons))
