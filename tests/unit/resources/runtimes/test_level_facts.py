"""resources.runtimes.level_facts: who keeps each limit here, and which packages cost each runner time."""

from pathlib import Path

from resources.runtimes.cgroups.detection import CgroupFinding
from resources.runtimes.cgroups.tree import Cgroups
from resources.runtimes.cgroups.v2 import V2Group
from resources.runtimes.level_facts import facts_of, late_facts
from resources.runtimes.zygote import LatePackage

DISK = "disk: a tmpfs of that size; open files: of each process (rlimit)"
CPU = "CPU: seconds of each process (rlimit), the cores are not limited"
RAM = "RAM: data of each process (rlimit), and the whole run ten times a second (guard)"
PROCESSES = "processes: of the run's user namespace (rlimit)"
LANDLOCK = "Landlock as a second wall: ABI 7"


def found(*controllers: str, reason: str = "") -> CgroupFinding:
    bases = {controller: Path("/nowhere") for controller in controllers}
    return CgroupFinding(cgroups=Cgroups(V2Group, bases), reason=reason)


def test_cgroups_keep_all_limits_of_the_whole_run() -> None:
    assert facts_of(found("cpu", "memory", "pids"), 7) == (
        "CPU, processes, RAM: of the whole run (cgroup)",
        DISK,
        LANDLOCK,
    )


def test_without_cgroups_the_weaker_way_and_its_reason_are_named() -> None:
    none = CgroupFinding(cgroups=None, reason="v2: not delegated")
    reason = "no cgroup for that: v2: not delegated"
    assert facts_of(none, 7) == (CPU, RAM, PROCESSES, reason, DISK, LANDLOCK)


def test_what_only_some_controllers_keep_is_told_apart() -> None:
    assert facts_of(found("pids", reason="no controller memory"), 7) == (
        "processes: of the whole run (cgroup)",
        CPU,
        RAM,
        "no cgroup for that: no controller memory",
        DISK,
        LANDLOCK,
    )


def test_a_kernel_without_landlock_is_named() -> None:
    assert facts_of(found("cpu"), 0)[-1] == "Landlock as a second wall: this kernel has none"


def test_packages_with_threads_are_named_with_their_cost() -> None:
    late = (
        LatePackage(name="package a", left="starts 1 thread", seconds=0.0124),
        LatePackage(name="package b", left="shares memory", seconds=1.5),
    )
    assert late_facts(late) == (
        "package a starts 1 thread when it is imported, so each new runner imports it by itself: 12 ms more",
        "package b shares memory when it is imported, so each new runner imports it by itself: 1500 ms more",
    )
    assert late_facts(()) == ()
