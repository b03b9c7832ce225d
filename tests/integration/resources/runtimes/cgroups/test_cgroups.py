"""resources.runtimes.cgroups on this machine, v1 or v2: limits hold, are told and measured, and nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from resources.runtimes.cgroups import files
from resources.runtimes.cgroups.directories import kill_members
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.cgroups.tree import Cgroups
from tests.integration.resources.runtimes.cgroups.conftest import Start, directories_of
from tests.integration.resources.runtimes.conftest import is_gone
from tests.waiting import wait_for

LIMITS = RunLimits(cpu=1, ram_mb=64, processes=20)
WAIT = "sys.stdin.read()"
RAM_BOMB = "held = b'x' * (200 << 20)"
# Some of them outside of the session and the process group, none of them willing to end.
FAMILY = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in range(6):
    if os.fork() == 0:
        if number % 2:
            os.setsid()
        time.sleep(600)
print("forked", flush=True)
time.sleep(600)
"""
FORK_BOMB = """
refused = 0
for _ in range(100):
    try:
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
    except BlockingIOError:
        refused += 1
print(refused, flush=True)
sys.stdin.read()
"""
BURN = """
import time
begin, used = time.monotonic(), time.process_time()
while time.process_time() - used < 0.4:
    pass
print(time.monotonic() - begin, flush=True)
"""
WORKER = """
import os, sys
from isolane.limits import RunLimits
from resources.runtimes.cgroups.detection import find_cgroups
group = find_cgroups().cgroups.create(RunLimits(ram_mb=64))
print(*[os.readlink(f"/proc/self/fd/{each}") for each in group.join_fds()], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def group(cgroups: Cgroups) -> Iterator[RunGroup]:
    """A group that is ended with the test."""
    made = cgroups.create(LIMITS)
    yield made
    kill(made)
    made.remove()


def kill(group: RunGroup) -> None:
    """Kill the processes of a group."""
    for directory in directories_of(group):
        kill_members(directory)


def members(group: RunGroup) -> set[int]:
    """Return the processes that are in every directory of a group."""
    return set.intersection(*(set(files.members(each)) for each in directories_of(group)))


def output_line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def end(program: subprocess.Popen[str]) -> None:
    program.communicate()


def test_a_child_in_a_new_user_and_pid_namespace_joins_by_itself(
    group: RunGroup, start: Start
) -> None:
    program = start(group, WAIT)
    (inside,) = members(group)
    assert inside != program.pid
    namespaces = [Path(f"/proc/{inside}/ns/{kind}").readlink() for kind in ("user", "pid")]
    assert namespaces != [Path(f"/proc/self/ns/{kind}").readlink() for kind in ("user", "pid")]
    end(program)
    wait_for(lambda: not members(group), "the program to end")
    assert group.excess() is None


def test_too_much_memory_ends_the_run_and_is_told(group: RunGroup, start: Start) -> None:
    program = start(group, RAM_BOMB)
    end(program)
    assert program.returncode != 0
    assert group.excess() == Code.RAM_EXCEEDED
    assert 32 < group.usage().peak_ram_mb <= 64


def test_too_many_processes_are_refused_and_told(group: RunGroup, start: Start) -> None:
    program = start(group, FORK_BOMB)
    assert int(output_line(program)) == 100 - 19  # the first one counts, too
    if any((directory / "pids.events").exists() for directory in directories_of(group)):
        assert group.excess() == Code.PROCESS_LIMIT


def test_processor_time_and_memory_are_measured(group: RunGroup, start: Start) -> None:
    end(start(group, "held = b'x' * (20 << 20)\n" + BURN))
    usage = group.usage()
    assert 0.3 < usage.cpu_seconds < 5
    assert 20 < usage.peak_ram_mb <= 64
    assert group.excess() is None


def test_processor_time_is_limited(cgroups: Cgroups, start: Start) -> None:
    group = cgroups.create(RunLimits(cpu=0.25))
    program = start(group, BURN)
    took = float(output_line(program))
    end(program)
    group.remove()
    assert took > 0.8  # of 1.6 at a quarter of a core; without the limit 0.4


def test_kill_ends_all_processes_and_nothing_is_left(cgroups: Cgroups, start: Start) -> None:
    group = cgroups.create(LIMITS)
    directories = directories_of(group)
    program = start(group, FAMILY)
    assert output_line(program) == "forked"
    found = members(group)
    assert len(found) == 7
    kill(group)
    group.remove()
    assert not any(directory.exists() for directory in directories)
    # A process leaves its group a moment before it is a zombie.
    wait_for(lambda: all(is_gone(pid) for pid in found), "the processes to end")


def test_removing_waits_for_processes_that_end(cgroups: Cgroups, start: Start) -> None:
    group = cgroups.create(LIMITS)
    directories = directories_of(group)
    program = start(group, WAIT)
    program.kill()
    group.remove()
    assert not any(directory.exists() for directory in directories)


def test_what_a_dead_worker_left_is_swept_and_a_living_one_is_not_touched(
    cgroups: Cgroups,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        directories = [Path(each).parent for each in output_line(worker).split()]
        with subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        ) as stray:
            for directory in directories:
                files.write(directory / "cgroup.procs", stray.pid)
            cgroups.sweep()
            assert all(files.members(directory) == [stray.pid] for directory in directories)
            worker.kill()
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
            cgroups.sweep()
            assert not any(directory.exists() for directory in directories)
            assert stray.wait(10) == -signal.SIGKILL
