"""resources.runtimes.cgroups: groups of dead workers are removed, and no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isolane.limits import RunLimits
from resources.runtimes.cgroups.detection import find_cgroups
from resources.runtimes.cgroups.names import WORKER_LEAF, is_of_dead_worker, own_stem
from tests.unit.resources.runtimes.cgroups.kernel import Kernel, groups_below


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_only_groups_of_dead_workers_are_removed(kernel: Kernel, dead: int) -> None:
    unit = kernel.mount_v2("/isolane.service", members=[os.getpid()])
    cgroups = find_cgroups(kernel.process).cgroups
    assert cgroups is not None
    cgroups.create(RunLimits())
    (own,) = unit.glob(f"{own_stem()}-*")
    kept = [WORKER_LEAF, own.name, f"{own_stem()}-0", "isolane-x", f"other-{dead}-5-1"]
    for name in [*kept[2:], f"isolane-{dead}-5-1", f"isolane-{os.getpid()}-5-12"]:
        (unit / name).mkdir()
    cgroups.sweep()
    assert groups_below(kernel.root) == sorted(kept[:-1])
    assert (unit / kept[-1]).exists()


def test_groups_of_other_users_are_left(
    kernel: Kernel, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = kernel.mount_v2("/isolane.service", members=[os.getpid()])
    cgroups = find_cgroups(kernel.process).cgroups
    assert cgroups is not None
    (unit / f"isolane-{dead}-5-1").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: Path(unit).stat().st_uid + 1)
    cgroups.sweep()
    assert (unit / f"isolane-{dead}-5-1").exists()


def test_a_zombie_is_a_dead_worker() -> None:
    command = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        name = f"isolane-{process.pid}-{stat.rpartition(')')[2].split()[19]}-1"
        assert not is_of_dead_worker(name)
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_of_dead_worker(name)
