"""Sentences about what a machine gives at an isolation level. Pure."""

from collections.abc import Sequence

from resources.runtimes.cgroups.detection import CgroupFinding
from resources.runtimes.zygote import LatePackage

_BY_CGROUP = {"cpu": "CPU", "ram_mb": "RAM", "processes": "processes"}
_BY_RLIMIT = {
    "cpu": "CPU: seconds of each process (rlimit), the cores are not limited",
    "ram_mb": "RAM: data of each process (rlimit), and the whole run ten times a second (guard)",
    "processes": "processes: of the run's user namespace (rlimit)",
}


def facts_of(finding: CgroupFinding, landlock_abi: int) -> tuple[str, ...]:
    """Return who keeps each limit, and the walls that depend on the kernel."""
    kept = finding.cgroups.kept if finding.cgroups is not None else frozenset()
    facts = []
    if kept:
        facts.append(
            f"{', '.join(_BY_CGROUP[name] for name in sorted(kept))}: of the whole run (cgroup)"
        )
    facts += [text for name, text in _BY_RLIMIT.items() if name not in kept]
    if finding.reason:
        facts.append(f"no cgroup for that: {finding.reason}")
    facts.append("disk: a tmpfs of that size; open files: of each process (rlimit)")
    second = f"ABI {landlock_abi}" if landlock_abi else "this kernel has none"
    facts.append(f"Landlock as a second wall: {second}")
    return tuple(facts)


def late_facts(late: Sequence[LatePackage]) -> tuple[str, ...]:
    """Return the packages that each runner imports by itself, and what that costs."""
    return tuple(
        f"{package.name} starts {_threads(package.threads)} when it is imported, so each new runner imports it"
        f" by itself: {package.seconds * 1000:.0f} ms more"
        for package in late
    )


def _threads(count: int) -> str:
    return "a thread" if count == 1 else f"{count} threads"
