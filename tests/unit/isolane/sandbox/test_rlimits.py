"""isolane.sandbox.rlimits: which of a run's limits the kernel keeps for each process."""

import mmap
import resource
from collections.abc import Collection

import pytest

from isolane.limits import RunLimits
from isolane.sandbox import rlimits
from isolane.sandbox.rlimits import apply_rlimits

MB = 1 << 20
PRESENT_MB = 300  # that the zygote has
OF_THE_GATE = RunLimits(connections=3, network_mb=7, idle_seconds=2)
LIMITS = RunLimits(cpu=0.5, ram_mb=64, processes=8, disk_mb=5, open_files=32, seconds=9.0)
ALWAYS = {
    resource.RLIMIT_CORE: (1, 1),
    resource.RLIMIT_MEMLOCK: (64 << 10, 64 << 10),
    resource.RLIMIT_MSGQUEUE: (0, 0),
}
Set = dict[int, tuple[int, int]]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Set:
    """The limits that were set, in a process that had none."""
    given: Set = {}
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda which: given.get(which, endless))
    monkeypatch.setattr(resource, "setrlimit", given.__setitem__)
    monkeypatch.setattr(rlimits, "present_data", lambda: PRESENT_MB * MB)
    return given


def test_a_run_without_limits_has_the_common_ones(kernel: Set) -> None:
    apply_rlimits(RunLimits(), counted=())
    assert kernel == ALWAYS


def test_the_limits_of_the_gate_are_not_the_kernels(kernel: Set) -> None:
    apply_rlimits(OF_THE_GATE, counted=())
    assert kernel == ALWAYS


def test_where_nothing_else_counts_all_are_set(kernel: Set) -> None:
    apply_rlimits(LIMITS, counted=())
    assert kernel == ALWAYS | {
        resource.RLIMIT_NOFILE: (32, 32),
        resource.RLIMIT_NPROC: (10, 10),  # and guard and forwarder
        resource.RLIMIT_DATA: ((300 + 64 + 128) * MB,) * 2,
        resource.RLIMIT_CPU: (5, 6),  # 4.5 seconds, and one to die of the second signal
    }


@pytest.mark.parametrize(
    ("counted", "which"),
    [
        ({"processes"}, resource.RLIMIT_NPROC),
        ({"ram_mb"}, resource.RLIMIT_DATA),
        ({"cpu"}, resource.RLIMIT_CPU),
    ],
)
def test_what_a_cgroup_counts_is_not_limited_again(
    kernel: Set, counted: Collection[str], which: int
) -> None:
    apply_rlimits(LIMITS, counted=counted)
    assert which not in kernel
    assert len(kernel) == len(ALWAYS) + 3


def test_a_stricter_limit_of_the_machine_stays(kernel: Set) -> None:
    kernel[resource.RLIMIT_NOFILE] = (16, 20)
    apply_rlimits(LIMITS, counted=())
    assert kernel[resource.RLIMIT_NOFILE] == (20, 20)


def test_data_that_is_there_already_is_known() -> None:
    before = rlimits.present_data()
    with mmap.mmap(-1, 16 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        assert 16 * MB <= rlimits.present_data() - before < 32 * MB
