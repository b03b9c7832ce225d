"""resources.runtimes.cgroups: the files that a group of v1 and of v2 writes and reads."""

import errno
import logging
import os
from pathlib import Path

import pytest

from isolane.limits import RunLimits, Usage
from isolane.results import Code
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.cgroups.detection import find_cgroups
from resources.runtimes.cgroups.directories import kill_members
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.cgroups.tree import Cgroups
from tests.unit.resources.runtimes.cgroups.kernel import Kernel

OF_OTHERS = {"disk_mb": 9, "open_files": 9, "connections": 9, "network_mb": 9, "idle_seconds": 9}
LIMITS = RunLimits(cpu=0.5, ram_mb=64, processes=20, **OF_OTHERS)
V1_MOUNTS = ("memory", "pids", "cpu", "cpuacct")
RUN = "isolane-[0-9]*-[0-9]*"


class Machine:
    """A fake kernel with cgroups found, and the files of the one group that is made."""

    def __init__(self, kernel: Kernel, version: str) -> None:
        self.kernel = kernel
        if version == "v2":
            kernel.mount_v2("/isolane.service", members=[os.getpid()])
        else:
            kernel.mount_v1("/own", hierarchies=V1_MOUNTS)
        finding = find_cgroups(kernel.process)
        assert finding.cgroups is not None
        self.cgroups: Cgroups = finding.cgroups

    @property
    def directories(self) -> list[Path]:
        return sorted(self.kernel.root.rglob(RUN))

    def file(self, name: str) -> Path:
        (found,) = self.kernel.root.rglob(f"{RUN}/{name}")
        return found

    def values(self, *names: str) -> list[str]:
        return [self.file(name).read_text() for name in names]


@pytest.fixture
def v1(kernel: Kernel) -> Machine:
    return Machine(kernel, "v1")


@pytest.fixture
def v2(kernel: Kernel) -> Machine:
    return Machine(kernel, "v2")


@pytest.fixture(params=["v1", "v2"])
def machine(kernel: Kernel, request: pytest.FixtureRequest) -> Machine:
    return Machine(kernel, request.param)


@pytest.fixture
def group(machine: Machine) -> RunGroup:
    return machine.cgroups.create(LIMITS)


def test_v2_writes_its_limits(v2: Machine) -> None:
    v2.cgroups.create(LIMITS)
    names = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")
    assert v2.values(*names) == ["67108864", "0", "1", "20", "50000 100000"]


def test_v1_writes_its_limits(v1: Machine) -> None:
    v1.cgroups.create(LIMITS)
    of_memory = ("limit_in_bytes", "memsw.limit_in_bytes", "kmem.tcp.limit_in_bytes")
    assert v1.values(*(f"memory.{name}" for name in of_memory)) == ["67108864"] * 3
    assert v1.values("pids.max", "cpu.cfs_quota_us") == ["20", "50000"]


def test_without_limits_the_kernel_keeps_its_defaults(machine: Machine) -> None:
    machine.cgroups.create(RunLimits())
    assert machine.values("pids.max") == ["max"]


def test_a_tiny_share_is_the_least_that_the_kernel_takes(v2: Machine) -> None:
    v2.cgroups.create(RunLimits(cpu=0.001))
    assert v2.values("cpu.max") == ["1000 100000"]


@pytest.mark.parametrize(
    "absent",
    ["memory.swap.max", "memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"],
)
def test_a_machine_without_some_counters_has_limits_all_the_same(
    machine: Machine, absent: str
) -> None:
    machine.kernel.absent.add(absent)
    machine.cgroups.create(LIMITS)
    assert machine.values("pids.max") == ["20"]


def test_a_quota_above_that_of_a_group_around_is_left_to_it(v1: Machine) -> None:
    v1.kernel.refused["cpu.cfs_quota_us"] = errno.EINVAL
    v1.cgroups.create(LIMITS)
    assert v1.values("cpu.cfs_quota_us", "pids.max") == ["-1", "20"]


@pytest.mark.parametrize(
    ("version", "refused"),
    [("v1", "pids.max"), ("v1", "cpu.cfs_quota_us"), ("v2", "pids.max"), ("v2", "cpu.max")],
)
def test_a_group_that_cannot_be_made_whole_leaves_nothing(
    kernel: Kernel, version: str, refused: str
) -> None:
    machine = Machine(kernel, version)
    kernel.refused[refused] = errno.EPERM
    with pytest.raises(RuntimeStartError, match=refused):
        machine.cgroups.create(LIMITS)
    assert machine.directories == []


def test_a_directory_that_cannot_be_made_undoes_those_before_it(v1: Machine) -> None:
    v1.kernel.refused["own"] = errno.ENOSPC
    with pytest.raises(RuntimeStartError, match="No space left"):
        v1.cgroups.create(LIMITS)
    assert v1.directories == []


def test_descriptors_lead_into_every_directory_until_the_end(
    machine: Machine, group: RunGroup
) -> None:
    descriptors = group.join_fds()
    assert group.join_fds() == descriptors
    joined = {Path(f"/proc/self/fd/{each}").readlink() for each in descriptors}
    assert joined == {directory / "cgroup.procs" for directory in machine.directories}
    assert not any(os.get_inheritable(each) for each in descriptors)
    group.remove()
    for each in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(each)


def test_v2_reads_its_usage(v2: Machine) -> None:
    group = v2.cgroups.create(LIMITS)
    v2.file("cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    v2.file("memory.peak").write_text("3145728\n")
    assert group.usage() == Usage(cpu_seconds=1.5, peak_ram_mb=3.0)


def test_v2_without_a_peak_keeps_the_largest_seen(v2: Machine) -> None:
    v2.kernel.absent.add("memory.peak")
    group = v2.cgroups.create(LIMITS)
    for now in (1 << 20, 5 << 20, 2 << 20):
        v2.file("memory.current").write_text(str(now))
        usage = group.usage()
    assert usage.peak_ram_mb == 5.0


def test_v1_reads_its_usage(v1: Machine) -> None:
    group = v1.cgroups.create(LIMITS)
    v1.file("cpuacct.usage").write_text("2500000000\n")
    v1.file("memory.max_usage_in_bytes").write_text("1572864\n")
    assert group.usage() == Usage(cpu_seconds=2.5, peak_ram_mb=1.5)


def test_a_group_that_is_gone_has_used_nothing(group: RunGroup) -> None:
    group.remove()
    assert group.usage() == Usage()
    assert group.excess() is None


V1_KILLED = ("memory.oom_control", "under_oom 0\noom_kill 1\n")
V2_KILLED = ("memory.events", "max 9\noom 1\noom_kill 1\n")


@pytest.mark.parametrize(
    ("version", "content", "code"),
    [
        ("v2", [], None),
        ("v2", [V2_KILLED], Code.RAM_EXCEEDED),
        ("v2", [("memory.events", "oom 0\noom_kill 1\n")], None),
        ("v2", [("pids.events", "max 3\n")], Code.PROCESS_LIMIT),
        ("v2", [V2_KILLED, ("pids.events", "max 3\n")], Code.RAM_EXCEEDED),
        ("v1", [], None),
        ("v1", [V1_KILLED], Code.RAM_EXCEEDED),
        ("v1", [V1_KILLED, ("pids.events", "max 3\n")], Code.RAM_EXCEEDED),
        ("v1", [("pids.events", "max 3\n")], Code.PROCESS_LIMIT),
    ],
)
def test_the_limit_that_was_hit_is_told(
    kernel: Kernel, version: str, content: list[tuple[str, str]], code: Code | None
) -> None:
    machine = Machine(kernel, version)
    group = machine.cgroups.create(LIMITS)
    for name, text in content:
        machine.file(name).write_text(text)
    assert group.excess() == code


def test_v1_without_events_of_processes_tells_none(v1: Machine) -> None:
    v1.kernel.absent.add("pids.events")
    assert v1.cgroups.create(LIMITS).excess() is None


def test_v2_kills_by_its_switch(v2: Machine) -> None:
    v2.cgroups.create(LIMITS)
    kill_members(v2.directories[0])
    assert v2.values("cgroup.kill") == ["1"]


def test_a_group_that_is_removed_leaves_nothing(machine: Machine, group: RunGroup) -> None:
    group.remove()
    group.remove()
    assert machine.directories == []


def test_a_group_that_stays_is_reported_and_removed_by_the_next_sweep(
    v2: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    group = v2.cgroups.create(LIMITS)
    v2.kernel.refused[v2.directories[0].name] = errno.EPERM
    with caplog.at_level(logging.ERROR):
        group.remove()
        v2.cgroups.sweep()
    assert {record.__dict__.get("event") for record in caplog.records} == {"TEARDOWN_FAULT"}
    assert len(v2.directories) == 1
    v2.kernel.refused.clear()
    v2.cgroups.sweep()
    assert v2.directories == []


def test_waiting_for_processes_to_end_is_bounded(v2: Machine) -> None:
    group = v2.cgroups.create(LIMITS)
    v2.file("cgroup.procs").write_text("4194000\n")
    group.remove()
    assert len(v2.directories) == 1
    v2.file("cgroup.procs").write_text("")
    v2.cgroups.sweep()
    assert v2.directories == []
