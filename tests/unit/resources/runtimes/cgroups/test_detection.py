"""resources.runtimes.cgroups.detection: v2 where it is delegated, v1 where it is writable, else the reason."""

import errno
import os

import pytest

from isolane.limits import RunLimits
from resources.runtimes.cgroups.detection import CgroupFinding, find_cgroups
from resources.runtimes.cgroups.names import WORKER_LEAF
from resources.runtimes.cgroups.tree import Cgroups
from resources.runtimes.cgroups.v1 import V1Group
from resources.runtimes.cgroups.v2 import V2Group
from tests.unit.resources.runtimes.cgroups.kernel import Kernel, groups_below

ALL = frozenset({"cpu", "ram_mb", "processes"})
V1_MOUNTS = ("memory", "pids", "cpu", "cpuacct")
ME, OTHER = os.getpid(), 4_194_000


def find(kernel: Kernel) -> CgroupFinding:
    return find_cgroups(kernel.process)


def found(kernel: Kernel) -> Cgroups:
    finding = find(kernel)
    assert finding.cgroups is not None, finding.reason
    return finding.cgroups


def test_v2_moves_the_worker_into_a_leaf_and_enables_the_controllers(kernel: Kernel) -> None:
    unit = kernel.mount_v2("/system.slice/isolane.service", members=[ME])
    assert found(kernel).kept == ALL
    assert (unit / "cgroup.procs").read_text() == ""
    assert (unit / WORKER_LEAF / "cgroup.procs").read_text() == f"{ME}\n"
    assert (unit / "cgroup.subtree_control").read_text().split() == ["memory", "pids", "cpu"]
    assert groups_below(kernel.root) == [WORKER_LEAF]


def test_a_second_worker_that_starts_in_the_leaf_uses_the_same_unit(kernel: Kernel) -> None:
    unit = kernel.mount_v2("/isolane.service", members=[ME])
    found(kernel)
    (kernel.process / "cgroup").write_text(f"0::/isolane.service/{WORKER_LEAF}\n")
    group = found(kernel).create(RunLimits(ram_mb=1))
    assert isinstance(group, V2Group)
    assert len([path for path in unit.iterdir() if path.is_dir()]) == 2
    assert not [path for path in (unit / WORKER_LEAF).iterdir() if path.is_dir()]


def test_all_processes_of_a_unit_that_systemd_has_delegated_are_moved(kernel: Kernel) -> None:
    unit = kernel.mount_v2("/isolane.service", members=[OTHER, ME])
    kernel.marked.add(unit)
    assert found(kernel).kept == ALL
    assert (unit / WORKER_LEAF / "cgroup.procs").read_text() == f"{OTHER}\n{ME}\n"


def test_a_group_with_other_processes_is_left_as_it_is(kernel: Kernel) -> None:
    session = kernel.mount_v2("/user.slice/session-3.scope", members=[OTHER, ME])
    finding = find(kernel)
    assert finding.cgroups is None
    assert "other processes are in" in finding.reason
    assert "Delegate=yes" in finding.reason
    assert (session / "cgroup.procs").read_text() == f"{OTHER}\n{ME}\n"
    assert groups_below(kernel.root) == []


def test_processes_that_cannot_be_seen_are_given_up(kernel: Kernel) -> None:
    kernel.marked.add(kernel.mount_v2("/isolane.service", members=[0, ME]))
    finding = find(kernel)
    assert finding.cgroups is None
    assert "cannot be moved" in finding.reason


def test_in_the_root_of_the_tree_nothing_is_moved(kernel: Kernel) -> None:
    kernel.absent.add("cgroup.events")
    root = kernel.mount_v2("/", members=[])
    assert found(kernel).kept == ALL
    assert not (root / WORKER_LEAF).exists()


def test_a_part_of_the_controllers_is_used_and_the_rest_named(kernel: Kernel) -> None:
    kernel.mount_v2("/isolane.service", controllers="cpuset memory", members=[ME])
    finding = find(kernel)
    assert finding.cgroups is not None
    assert finding.cgroups.kept == {"ram_mb"}
    assert finding.reason == "no controller pids; no controller cpu"


@pytest.mark.parametrize(
    ("refused", "controllers", "reason"),
    [
        ("isolane.service", "memory", "is not writable for this user"),
        ("cgroup.procs", "memory", "is not writable for this user"),
        ("none", "hugetlb", "has none of the controllers memory, pids, cpu"),
        ("cgroup.subtree_control", "memory", "cgroup.subtree_control"),
    ],
)
def test_the_reason_against_v2_is_in_words(
    kernel: Kernel, refused: str, controllers: str, reason: str
) -> None:
    kernel.mount_v2("/isolane.service", controllers=controllers, members=[ME])
    kernel.refused[refused] = errno.EACCES
    finding = find(kernel)
    assert finding.cgroups is None
    assert reason in finding.reason


def test_v1_is_used_below_the_own_group_of_each_hierarchy(kernel: Kernel) -> None:
    own = kernel.mount_v1("/docker/5f", hierarchies=V1_MOUNTS)
    cgroups = found(kernel)
    assert cgroups.kept == ALL
    assert groups_below(kernel.root) == []
    assert isinstance(cgroups.create(RunLimits(processes=1)), V1Group)
    assert all(len(groups_below(directory)) == 1 for directory in own.values())


def test_v1_is_used_where_v2_has_no_controllers(kernel: Kernel) -> None:
    kernel.mount_v2("/", controllers="hugetlb", members=[ME])
    kernel.mount_v1("/", hierarchies=V1_MOUNTS)
    assert isinstance(found(kernel).create(RunLimits()), V1Group)


def test_controllers_of_v1_that_are_mounted_together_share_a_group(kernel: Kernel) -> None:
    own = kernel.mount_v1("/", hierarchies=("memory", "cpu,cpuacct"))
    finding = find(kernel)
    assert finding.cgroups is not None
    assert finding.cgroups.kept == {"ram_mb", "cpu"}
    assert finding.reason == "no hierarchy of pids is mounted"
    assert len(finding.cgroups.create(RunLimits()).join_fds()) == len(own)


def test_a_hierarchy_of_v1_that_is_not_writable_is_left_out(kernel: Kernel) -> None:
    kernel.mount_v1("/", hierarchies=V1_MOUNTS)
    kernel.refused["memory"] = errno.EROFS
    finding = find(kernel)
    assert finding.cgroups is not None
    assert finding.cgroups.kept == {"processes", "cpu"}
    assert "Read-only file system" in finding.reason


def test_counting_alone_is_no_limit(kernel: Kernel) -> None:
    kernel.mount_v1("/", hierarchies=("cpuacct",))
    assert find(kernel).cgroups is None


def test_without_any_cgroup_the_reason_names_both(kernel: Kernel) -> None:
    for name in ("cgroup", "mountinfo"):
        (kernel.process / name).write_text("")
    finding = find(kernel)
    assert finding.cgroups is None
    assert "v2: not mounted" in finding.reason
    assert "v1: no hierarchy of memory is mounted" in finding.reason


def test_without_proc_the_reason_is_told(kernel: Kernel) -> None:
    finding = find(kernel)
    assert finding.cgroups is None
    assert finding.reason.startswith("cgroups cannot be read:")


def test_a_second_look_finds_the_same_beside_groups_of_the_first(kernel: Kernel) -> None:
    kernel.mount_v2("/isolane.service", members=[os.getpid()])
    first = find_cgroups(kernel.process)
    assert first.cgroups is not None
    first.cgroups.create(RunLimits())
    second = find_cgroups(kernel.process)
    assert second.cgroups is not None
    assert (second.cgroups.kept, second.reason) == (first.cgroups.kept, first.reason)
    second.cgroups.create(RunLimits())
