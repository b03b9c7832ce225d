"""A short flood trial: runs of the level process end as promised, and leave nothing on the machine."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from resources.runtimes.base import Availability
from tenants.scope import TenantRef
from tests.accounts import KINDS, Account
from tests.factories import set_quota
from tests.plugin import ROOT
from tests.waiting import wait_for
from trials.flood import machine
from trials.flood.machine import Machine
from trials.flood.namespaces import namespaces_of
from trials.flood.scenario import FloodSize, run_flood

RUNS, SEED = 40, 5  # of this seed some fail, and one leaves a process
AT_ONCE = 8


@pytest.mark.usefixtures("broker")
def test_sandboxes_end_as_promised_and_leave_nothing(
    acme: TenantRef,
    globex: TenantRef,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    process_level: Availability,
) -> None:
    if not process_level.ok:
        pytest.skip(f"level process is not available here: {process_level.reason}")
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.flood_nodes")
    monkeypatch.setenv("ISOLANE_NODE_PATHS", f"{ROOT}{os.pathsep}{tmp_path}")
    monkeypatch.setenv("ISOLANE_WORKER_CAPACITY", str(AT_ONCE))
    monkeypatch.setenv("ISOLANE_WORKER_CONCURRENCY", str(AT_ONCE + 2))
    for tenant in (acme, globex):
        set_quota(tenant, RUNS)
    size = FloodSize(runs=RUNS, seed=SEED, workers=1, at_once=AT_ONCE, kill=False)
    result = run_flood([acme, globex], tmp_path, size, progress=lambda _: None)
    assert (result.broken, result.left) == ([], [])
    assert result.ends.total() == RUNS
    assert len(result.ends) > 1
    assert result.sandboxes > 0  # seen while they lived


@contextmanager
def a_sandbox(folder: Path) -> Iterator[int]:
    """Run a process 1 of its own namespace that looks like a fork of the trial's zygote."""
    program = [sys.executable, "-c", "import time; time.sleep(60)", f"--path={folder}"]
    unshare = ["unshare", "--user", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen([*unshare, *program]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_the_search_finds_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cgroups = tmp_path / "workers", tmp_path / "cgroups"
    folder.mkdir()
    (cgroups / "pids" / "isolane-7-123-1").mkdir(parents=True)
    (cgroups / "pids" / "isolane-77-123-1").mkdir()
    monkeypatch.setattr(machine, "_CGROUPS", cgroups)
    looker = Machine(folder)
    assert (looker.left([]), looker.left_by_workers([]), looker.look()) == ([], [], 0)
    assert [line.rpartition("/")[2] for line in looker.left([7])] == ["isolane-7-123-1"]
    looker._mounts = set(list(looker._mounts)[1:])
    assert [line.partition(" ")[0] for line in looker.left([])] == ["mount"]
    (folder / "log").touch()
    with socket.socket(socket.AF_UNIX) as sock, a_sandbox(folder):
        sock.bind(str(folder / "s"))
        wait_for(looker.look, "the sandbox")
        assert "process" in "".join(looker.left([]))
        kinds = [line.partition(" ")[0] for line in looker.left_by_workers([folder / "log"])]
    assert kinds[-1] == "socket"
    assert set(kinds[:-1]) == {"process"}


def test_a_namespace_that_a_descriptor_keeps_is_found(tmp_path: Path) -> None:
    looker = Machine(tmp_path)
    with a_sandbox(tmp_path) as pid, ExitStack() as stack:
        wait_for(looker.look, "the sandbox")
        (guard,) = looker.guards
        path = Path(f"/proc/{guard}/ns/user")
        named = str(path.readlink())
        assert named in looker.namespaces
        kept = stack.enter_context(path.open("rb"))
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not looker.look(), "its end")
        holder = f"/proc/{os.getpid()}/fd/{kept.fileno()}"
        assert looker.left([]) == [f"namespace {named} kept by {holder}"]
    assert looker.left([]) == []


def test_a_namespace_that_a_worker_keeps_is_found_even_if_no_look_has_seen_it(
    tmp_path: Path,
) -> None:
    keeps = "import os, time; os.open('/proc/%d/ns/user', os.O_RDONLY); print(flush=True); time.sleep(60)"
    looker, unshare = Machine(tmp_path), ["unshare", "--user", "--kill-child", "sleep", "60"]
    with subprocess.Popen(unshare) as sandbox:
        wait_for(lambda: namespaces_of(sandbox.pid) - namespaces_of(os.getpid()), "the namespace")
        named = str(Path(f"/proc/{sandbox.pid}/ns/user").readlink())
        program = [sys.executable, "-c", keeps % sandbox.pid]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            sandbox.kill()
            sandbox.wait()
            found = looker.left([worker.pid])
            worker.kill()
    assert len(found) == 1
    assert found[0].startswith(f"namespace {named} kept by /proc/{worker.pid}/fd/")


def test_a_process_that_hides_itself_knows_its_own_namespaces() -> None:
    program = (
        "import os; from isolane.privileges import set_dumpable; set_dumpable(dumpable=False);"
        "from trials.flood.namespaces import namespaces_of; print(len(namespaces_of(os.getpid())))"
    )
    account = Account.of(KINDS[1]) if os.geteuid() == 0 else Account.of(KINDS[0])
    done = account.python(account.interpreter(), "-c", program)
    assert int(done.stdout) == len(namespaces_of(os.getpid())), done.stderr
