"""The cgroups of this machine, v1 or v2, and programs that join a group from namespaces of their own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isolane.limits import RunLimits
from resources.runtimes.cgroups.detection import find_cgroups
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.cgroups.names import own_stem
from resources.runtimes.cgroups.tree import Cgroups

JOIN = """
import os, sys
for descriptor in map(int, sys.argv[1:]):
    os.write(descriptor, b"0")
    os.close(descriptor)
print("joined", flush=True)
"""
# The descriptors were opened outside: the program itself has no right to any group.
NAMESPACES = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
Program = subprocess.Popen[str]
Start = Callable[[RunGroup, str], Program]


def directories_of(group: RunGroup) -> list[Path]:
    """Return the directories that its descriptors lead to."""
    return [Path(f"/proc/self/fd/{each}").readlink().parent for each in group.join_fds()]


@pytest.fixture(scope="session")
def machine_cgroups() -> Cgroups:
    """The cgroups of this machine; skips where there are none."""
    finding = find_cgroups()
    if finding.cgroups is None:
        pytest.skip(f"no cgroup can be made here: {finding.reason}")
    if finding.cgroups.kept != {"cpu", "ram_mb", "processes"}:
        pytest.skip(f"not every limit can be kept here: {finding.reason}")
    return finding.cgroups


@pytest.fixture
def cgroups(machine_cgroups: Cgroups) -> Iterator[Cgroups]:
    """The same; no group of this process may be left at the end of the test."""
    probe = machine_cgroups.create(RunLimits())
    bases = [directory.parent for directory in directories_of(probe)]
    probe.remove()
    yield machine_cgroups
    assert [path for base in bases for path in base.glob(f"{own_stem()}-*")] == []


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python programs in new namespaces, each in a group; they have joined when this returns."""
    started: list[Program] = []

    def start_one(group: RunGroup, code: str) -> Program:
        descriptors = group.join_fds()
        program = subprocess.Popen(
            [*NAMESPACES, sys.executable, "-c", JOIN + code, *map(str, descriptors)],
            pass_fds=descriptors,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "joined\n"
        return program

    yield start_one
    for program in started:
        program.kill()
        program.communicate()
