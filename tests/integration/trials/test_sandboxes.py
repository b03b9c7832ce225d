"""The search for what sandboxes leave finds it."""

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from isolane.limits import RunLimits
from resources.runtimes.cgroups.detection import find_cgroups
from tests.waiting import wait_for
from trials import sandboxes


def test_a_process_in_another_namespace_is_found_below_its_worker() -> None:
    with subprocess.Popen(["unshare", "--user", "--pid", "--fork", "sleep", "60"]) as parent:
        try:
            (inside,) = wait_for(
                lambda: _children(parent) if parent.poll() is None else None, "the sandbox"
            )
            wait_for(lambda: sandboxes.is_sandboxed(inside), "its namespace")
            found = sandboxes.sandboxed(os.getpid())
            assert [process.pid for process in found] == [inside]
            number = sandboxes.pid_namespace_number(inside)
            assert sandboxes.runtime_number(inside, number) == number > inside
        finally:
            for process in psutil.Process(parent.pid).children():
                process.kill()
            parent.kill()
    assert sandboxes.sandboxed(os.getpid()) == []
    own = sandboxes.pid_namespace_number(os.getpid())
    assert sandboxes.runtime_number(os.getpid(), own) == os.getpid()


def _children(parent: "subprocess.Popen[bytes]") -> list[int]:
    return [process.pid for process in psutil.Process(parent.pid).children()]


def test_a_cgroup_of_a_worker_is_found() -> None:
    found = find_cgroups()
    if found.cgroups is None:
        pytest.skip(f"no cgroups can be made here: {found.reason}")
    group = found.cgroups.create(RunLimits())
    try:
        assert sandboxes.cgroups([os.getpid()])
        assert sandboxes.cgroups([os.getpid() + 1]) == []
    finally:
        group.remove()
    assert sandboxes.cgroups([os.getpid()]) == []


def test_mounts_are_listed_by_their_place() -> None:
    assert f"mount {Path('/proc')}" in sandboxes.mounts()
