"""The level `process` where cgroups can be made, v1 or v2: each run has a group of its own, and the kernel counts."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from resources.runtimes.base import RunIdentity
from resources.runtimes.cgroups import files
from resources.runtimes.cgroups.mounts import UNIFIED, own_directories
from resources.runtimes.process import ProcessBackend, ProcessRuntime
from tests.integration.resources.runtimes.conftest import PACKAGES, Driver, why_not
from tests.placements import a_placement

NODES = (*PACKAGES, "tests.integration.resources.runtimes.contract.nodes")
LIMITS = RunLimits(cpu=0.5, ram_mb=128, processes=16, disk_mb=8, open_files=64, seconds=60.0)
# In v1 and v2, by controller.
SETTINGS = {
    "memory": ("memory.limit_in_bytes", "memory.max"),
    "pids": ("pids.max", "pids.max"),
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
}


@pytest.fixture(scope="module")
def backend() -> Iterator[ProcessBackend]:
    """A backend whose sandboxes are counted; skips where there is none."""
    if reason := why_not(ProcessBackend):
        pytest.skip(f"the level process is not available: {reason}")
    built = ProcessBackend(level="process", size=2, packages=NODES)
    try:
        found = built.cgroups
        if found.cgroups is None or found.cgroups.kept != {"cpu", "ram_mb", "processes"}:
            pytest.skip(f"not every limit can be kept by cgroups here: {found.reason}")
        yield built
    finally:
        built.stop()


@pytest.fixture
def runtime(backend: ProcessBackend) -> Iterator[ProcessRuntime]:
    """A sandbox whose runner has served a step."""
    identity = RunIdentity(tenant="acme", user_id="ada", request_id="r1")
    started = backend.start(a_placement("e1"), identity=identity, limits=LIMITS)
    assert isinstance(started, ProcessRuntime)
    try:
        started.open()
        Driver(started).output("test.identity")
        yield started
    finally:
        started.close(5)


def groups_of(pid: int) -> dict[str, Path]:
    """Return the directory of each controller's group that a process is in."""
    found = own_directories(
        Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"),
        Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
    )
    return {each: found.get(each) or found[UNIFIED] for each in SETTINGS}


def runner_of(runtime: ProcessRuntime) -> int:
    (runner,) = psutil.Process(runtime.pid).children()
    return runner.pid


def test_a_run_has_a_group_with_its_limits_that_goes_with_it(runtime: ProcessRuntime) -> None:
    groups = groups_of(runner_of(runtime))
    told = {}
    for controller, names in SETTINGS.items():
        (path,) = {
            groups[controller] / name for name in names if (groups[controller] / name).exists()
        }
        told[controller] = files.number(path)
    assert told == {"memory": 128 << 20, "pids": 16, "cpu": 50_000}
    assert runtime.close(5) == ()
    assert not any(group.exists() for group in groups.values())


def test_the_guard_is_not_in_the_group_of_its_run(runtime: ProcessRuntime) -> None:
    inside = groups_of(runner_of(runtime))
    guards = groups_of(runtime.pid)
    assert all(inside[controller] != guards[controller] for controller in SETTINGS)
    for group in inside.values():
        assert files.members(group) == [runner_of(runtime)]


def test_too_much_memory_ends_the_run_and_no_more_than_its_limit_is_recorded(
    runtime: ProcessRuntime,
) -> None:
    groups = groups_of(runner_of(runtime))
    result = Driver(runtime).run("contract.use_ram", {"amount": 192})
    assert result.code is Code.RAM_EXCEEDED, result
    assert not runtime.alive
    runtime.close(5)
    assert 100 < runtime.usage.peak_ram_mb <= 128
    assert not any(group.exists() for group in groups.values())
