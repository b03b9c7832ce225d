"""resources.runtimes.cgroups.mounts: the directory of each controller's group."""

from pathlib import Path

import pytest

from resources.runtimes.cgroups.mounts import UNIFIED, own_directories

CGROUP = "4:memory:/docker/5f\n2:cpu,cpuacct:/docker/5f\n1:name=systemd:/x:y\n0::/docker/5f\n"


def mounted(root: str, point: str, kind: str, options: str) -> str:
    return f"31 23 0:28 {root} {point} rw,relatime shared:9 - {kind} cgroup {options}\n"


def test_each_controller_has_its_directory() -> None:
    mountinfo = (
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        + mounted("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory")
        + mounted("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu,cpuacct")
        + mounted("/", "/sys/fs/cgroup/unified", "cgroup2", "rw,nsdelegate")
    )
    assert own_directories(CGROUP, mountinfo) == {
        "memory": Path("/sys/fs/cgroup/memory/docker/5f"),
        "cpu": Path("/sys/fs/cgroup/cpu/docker/5f"),
        "cpuacct": Path("/sys/fs/cgroup/cpu/docker/5f"),
        UNIFIED: Path("/sys/fs/cgroup/unified/docker/5f"),
    }


def test_a_container_sees_its_part_of_the_tree() -> None:
    mountinfo = mounted("/docker/5f", "/sys/fs/cgroup", "cgroup2", "rw")
    assert own_directories("0::/docker/5f/a\n", mountinfo) == {UNIFIED: Path("/sys/fs/cgroup/a")}


@pytest.mark.parametrize("group", ["/other", "/../.."])
def test_a_group_that_is_not_shown_has_no_directory(group: str) -> None:
    mountinfo = mounted("/docker/5f", "/sys/fs/cgroup", "cgroup2", "rw")
    assert own_directories(f"0::{group}\n", mountinfo) == {}
