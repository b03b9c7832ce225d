"""The zygote of a worker: it serves both levels, is replaced when it fails, and ends with its worker."""

import contextlib
import itertools
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import isolane
from isolane.results import Code
from resources.runtimes import shared_runner
from resources.runtimes import zygote as zygotes
from resources.runtimes.base import Runtime, RuntimeBackend, RuntimeStartError
from resources.runtimes.cgroups.detection import find_cgroups
from resources.runtimes.folder import PREFIX
from resources.runtimes.process import ProcessBackend, ProcessRuntime
from resources.runtimes.shared import SharedBackend
from resources.runtimes.zygote import Zygote
from tests.integration.resources.runtimes.conftest import (
    Driver,
    is_gone,
    sleepers,
    wait_until,
    why_not,
)
from tests.integration.resources.runtimes.contract.test_remains import cgroups
from tests.placements import ACME, a_placement
from tests.requirements import give_up

NODES = ("tests.nodes", "tests.integration.resources.runtimes.contract.nodes")
SOURCE = Path(isolane.__file__).parent.parent
BOTH = pytest.mark.parametrize("level", ["shared", "process"])
# A package that leaves a thread running when it is imported.
THREADED = """
import threading
from isolane import NodeContext, node
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
@node("threaded.is_alive")
def is_alive(ctx: NodeContext) -> bool:
    return thread.is_alive()
"""
# One that imports another from a folder that is not looked at.
EDITABLE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("threaded", {file!r})
sys.modules["threaded"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
"""
# One that every run would share a socket, a file and some memory with all others.
SHARING = """
import mmap, socket
from isolane import NodeContext, node
connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
file = open(__file__)
memory = mmap.mmap(-1, 4096)
@node("sharing.exchange")
def exchange(ctx: NodeContext) -> int:
    found, memory[0] = memory[0], 7
    return found
"""
NUMERIC = """
import numpy, random
from isolane import NodeContext, node
@node("numeric.sum")
def total(ctx: NodeContext, *, count: int) -> float:
    numbers = numpy.arange(count, dtype=float)
    return float(numbers @ numbers)
@node("numeric.draw")
def draw(ctx: NodeContext) -> list[float]:
    return [random.random(), float(numpy.random.random())]
"""
# A package that ends the first zygote between a fork and its answer, and notes the forked process.
FATAL = """
import os, pathlib, sys
note = pathlib.Path(__file__).with_name("note")
server = sys.modules["__main__"].ForkServer
answer = server._answer
def die_once(self, pid, *arguments):
    if not note.exists():
        note.write_text(str(pid))
        os._exit(1)
    answer(self, pid, *arguments)
server._answer = die_once
"""
SLOW = """
import pathlib, time
pathlib.Path(__file__).with_name("importing").touch()
time.sleep(60)
"""
# A package that remembers the process in which it was imported.
CURIOUS = """
import os
from isolane import NodeContext, node
environ = dict(os.environ)
descriptors = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
for number in range(3, 1000):
    try:
        descriptors.append(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
@node("curious.tell")
def tell(ctx: NodeContext) -> dict[str, object]:
    return {"environ": environ, "descriptors": descriptors}
"""


class Worker:
    """The backends of both levels, with a zygote of their own."""

    def __init__(self, folder: Path, *, packages: Sequence[str], paths: Sequence[Path]) -> None:
        options: dict[str, Any] = {"packages": packages, "paths": [folder, *paths]}
        self.backends: dict[str, RuntimeBackend] = {
            "shared": SharedBackend(level="shared", size=4, **options),
            "process": ProcessBackend(level="process", size=4, **options),
        }
        self._started: list[Runtime] = []

    @property
    def zygote(self) -> Zygote:
        """Return the zygote of both."""
        shared, process = self.backends.values()
        assert isinstance(shared, SharedBackend)
        assert isinstance(process, ProcessBackend)
        assert shared._zygote is process.zygote
        return process.zygote

    @property
    def pid(self) -> int:
        """Return the zygote's process id."""
        assert self.zygote.pid is not None
        return self.zygote.pid

    def start(self, level: str, *, tenant_id: int = 1) -> Driver:
        """Open a runtime."""
        backend = self.backends[level]
        if reason := why_not(type(backend)):
            give_up(f"the level {level} is not available: {reason}")
        runtime = backend.start(a_placement(tenant_id=tenant_id), identity=ACME)
        self._started.append(runtime)
        runtime.open()
        return Driver(runtime)

    def stop(self) -> None:
        """End all of it."""
        for runtime in self._started:
            runtime.close(5)
        for backend in self.backends.values():
            backend.stop()


@contextlib.contextmanager
def a_worker(
    folder: Path, *, packages: Sequence[str] = NODES, paths: Sequence[Path] = ()
) -> Iterator[Worker]:
    """A worker that is stopped in the end."""
    worker = Worker(folder, packages=packages, paths=paths)
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """One with the nodes of the tests."""
    with a_worker(tmp_path) as worker:
        yield worker


@pytest.fixture
def times() -> tuple[str, str, str, str]:
    """Times that no other process sleeps."""
    one, two, three, four = (f"3600.{secrets.randbits(40):013}{number}" for number in range(4))
    return one, two, three, four


# --- its failures
@BOTH
def test_one_that_was_killed_is_replaced(worker: Worker, level: str) -> None:
    worker.start(level)
    first = worker.pid
    os.kill(first, signal.SIGKILL)
    for tenant_id in (1, 2):
        assert worker.start(level, tenant_id=tenant_id).output("test.add", {"a": 1}) == 2
    assert worker.pid != first
    assert is_gone(first)


def test_with_it_end_its_sandboxes_which_count_as_lost(
    worker: Worker, times: tuple[str, ...]
) -> None:
    driver = worker.start("process")
    driver.on_progress = lambda: os.kill(worker.pid, signal.SIGKILL)
    parameters = {"child": times[0], "daemon": times[1], "seconds": 60}
    assert driver.run("contract.start_processes", parameters).code is Code.UNKNOWN_ERROR
    assert driver.runtime.lost
    wait_until(lambda: not sleepers(*times))
    driver.runtime.close(5)
    assert worker.start("process").output("test.add", {"a": 1}) == 2


def test_a_sandbox_ends_when_its_lifeline_does_though_zygote_and_worker_live(
    worker: Worker, times: tuple[str, ...]
) -> None:
    driver = worker.start("process")
    driver.output("contract.start_processes", {"child": times[0], "daemon": times[1]})
    assert len(sleepers(*times)) == 2
    runtime = driver.runtime
    assert isinstance(runtime, ProcessRuntime)
    runtime._child._lifeline.shutdown(socket.SHUT_WR)
    wait_until(lambda: not runtime.alive)
    assert sleepers(*times) == []
    assert not is_gone(worker.pid)
    runtime.close(5)
    assert runtime.lost


def test_without_it_shared_runners_go_on_and_are_used_again(
    worker: Worker, times: tuple[str, ...]
) -> None:
    driver = worker.start("shared")
    pid = driver.output("test.identity")["pid"]
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(worker.pid))
    assert driver.output("test.add", {"a": 1}) == 2
    assert driver.runtime.close(5) == ()
    again = worker.start("shared")
    assert again.output("test.identity")["pid"] == pid
    # Nor is anything left of one that ends without a zygote to report it.
    again.output("contract.start_processes", {"child": times[0], "daemon": times[1]})
    result = again.run("test.exit", {"code": 7})
    died = "the runtime died (how is not known)"
    assert (result.code, result.message) == (Code.UNKNOWN_ERROR, died)
    assert not again.runtime.lost
    wait_until(lambda: is_gone(pid) and not sleepers(*times))


@BOTH
def test_one_that_does_not_answer_is_replaced_and_its_runners_go_on(
    worker: Worker, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = worker.start(level)
    first = worker.pid
    monkeypatch.setattr(zygotes, "_ANSWER_SECONDS", 0.3)
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(worker.zygote, "_replace", restoring(worker.zygote, monkeypatch))
    assert worker.start(level, tenant_id=2).output("test.add", {"a": 1}) == 2
    assert worker.pid != first
    assert driver.output("test.add", {"a": 1}) == 2
    assert not is_gone(first)
    driver.runtime.kill()
    driver.runtime.close(5)
    wait_until(lambda: is_gone(first))


@BOTH
def test_a_runner_of_one_that_died_before_its_answer_shares_no_stream_with_the_next(
    tmp_path: Path, level: str
) -> None:
    (tmp_path / "fatal.py").write_text(FATAL)
    note = tmp_path / "note"
    with a_worker(tmp_path, packages=(*NODES, "fatal")) as worker:
        driver = worker.start(level)
        wait_until(lambda: is_gone(int(note.read_text())))
        assert driver.output("test.add", {"a": 1}) == 2


def test_one_that_starts_is_stopped_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with a_worker(tmp_path, packages=("slow",)) as worker, ThreadPoolExecutor(1) as thread:
        starting = thread.submit(worker.start, "shared")
        wait_until((tmp_path / "importing").exists)
        worker.stop()
        with pytest.raises(RuntimeStartError, match="the zygote did not start"):
            starting.result(5)
        with pytest.raises(RuntimeStartError, match="the worker stops"):
            worker.start("shared")


@BOTH
def test_one_without_room_for_descriptors_refuses_and_lives(worker: Worker, level: str) -> None:
    worker.start(level)
    first = worker.pid
    taken = {int(path.name) for path in Path(f"/proc/{first}/fd").iterdir()}
    limits = resource.prlimit(first, resource.RLIMIT_NOFILE)
    free = next(number for number in itertools.count() if number not in taken)
    resource.prlimit(first, resource.RLIMIT_NOFILE, (free, limits[1]))
    for _ in range(2):
        with pytest.raises(
            RuntimeStartError, match=r"the zygote cannot fork: .*Too many open files"
        ):
            worker.start(level, tenant_id=2)
    resource.prlimit(first, resource.RLIMIT_NOFILE, limits)
    assert worker.start(level, tenant_id=2).output("test.add", {"a": 1}) == 2
    assert worker.pid == first


def test_a_runner_is_not_said_to_have_written_what_others_wrote(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("import os\nos.write(2, b'DeprecationWarning: old')\n")
    with a_worker(tmp_path, packages=(*NODES, "loud")) as worker:
        driver = worker.start("shared")
        driver.runtime._child.stream.close()  # type: ignore[attr-defined]
        (error,) = driver.runtime.close(5)
    assert "DeprecationWarning" not in error


def test_the_id_of_a_dead_runner_that_its_zygote_does_not_keep_is_not_used(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = worker.start("shared")
    runtime = driver.runtime
    used: list[int] = []
    pid = driver.output("test.identity")["pid"]
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(worker.pid))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runtime.alive)
    monkeypatch.setattr(shared_runner, "end_runner_descendants", lambda *pids: used.extend(pids))
    monkeypatch.setattr(os, "killpg", lambda pid, number: used.append(pid))
    runtime.close(5)
    assert used == []


def restoring(zygote: Zygote, patch: pytest.MonkeyPatch) -> object:
    """Replace it, and give the new one the usual time."""
    replace = zygote._replace

    def replace_it() -> None:
        patch.setattr(zygotes, "_ANSWER_SECONDS", 10.0)
        replace()

    return replace_it


def test_one_that_has_grown_is_replaced_and_ends_with_its_last_runner(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, sandbox = worker.start("shared", tenant_id=1), worker.start("process")
    first = worker.pid
    monkeypatch.setattr(zygotes, "_LOOK_EVERY", 1)
    with monkeypatch.context() as patch:
        patch.setattr(zygotes, "_GROWTH_MAX_KB", -(1 << 40))
        other = worker.start("shared", tenant_id=2)
    assert worker.pid != first
    assert other.output("test.add", {"a": 1}) == 2
    # Its runners go on, in both levels, until the last of them has ended.
    for driver in (sandbox, shared):
        assert driver.output("test.add", {"a": 1}) == 2
        assert not is_gone(first)
        driver.runtime.kill()
        driver.runtime.close(5)
    wait_until(lambda: is_gone(first))
    second = worker.pid
    assert worker.start("process").output("test.add", {"a": 1}) == 2
    assert worker.pid == second  # which has not grown


def test_one_that_cannot_start_is_said_and_tried_again(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(zygotes, "_START_SECONDS", 0.0)
        with pytest.raises(RuntimeStartError, match="the zygote did not start"):
            worker.start("shared")
    assert worker.start("shared").output("test.add", {"a": 1}) == 2


def test_it_ends_with_the_last_backend_that_uses_it(worker: Worker) -> None:
    shared, process = worker.backends.values()
    worker.start("shared")
    pid = worker.pid
    for _ in range(3):  # the same one
        process.stop()
    assert not is_gone(pid)
    shared.stop()
    wait_until(lambda: is_gone(pid))


# --- packages
@BOTH
def test_a_package_that_leaves_something_at_its_import_is_imported_by_each_runner(
    tmp_path: Path, level: str
) -> None:
    (tmp_path / "threaded.py").write_text(THREADED)
    (tmp_path / "sharing.py").write_text(SHARING)
    tmp_path.chmod(0o755)  # a sandbox is another user's
    with a_worker(tmp_path, packages=(*NODES, "threaded", "sharing")) as worker:
        drivers = [worker.start(level, tenant_id=tenant_id) for tenant_id in (1, 2)]
        assert [(late.name, late.left) for late in worker.zygote.late] == [
            ("package threaded", "starts 1 thread"),
            ("package sharing", "opens 2 files or sockets and shares memory"),
        ]
        assert all(late.seconds > 0 for late in worker.zygote.late)
        for driver in drivers:
            assert driver.output("threaded.is_alive") is True
            assert driver.output("sharing.exchange") == 0  # nothing of the other tenant's run
            assert driver.output("test.add", {"a": 1}) == 2
        assert drivers[0].runtime.close(5) == ()
        names = {node.name for node in worker.backends[level].describe().nodes}
        assert {"threaded.is_alive", "test.add"} <= names


@BOTH
def test_without_its_packages_no_level_is_available(tmp_path: Path, level: str) -> None:
    with a_worker(tmp_path, packages=("nowhere",)) as worker:
        found = worker.backends[level].availability()
    assert not found.ok
    assert found.reason.startswith("package nowhere cannot be imported: ModuleNotFoundError")


@BOTH
def test_what_such_a_package_imports_is_shown_wherever_it_is(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, level: str
) -> None:
    """As an editable install does: its modules are in no folder of sys.path."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "threaded.py").write_text(THREADED)
    (tmp_path / "editable.py").write_text(EDITABLE.format(file=str(elsewhere / "threaded.py")))
    for folder in (tmp_path, elsewhere):
        folder.chmod(0o755)  # a sandbox is another user's
    with a_worker(tmp_path, packages=("editable",)) as worker:
        assert worker.start(level).output("threaded.is_alive") is True
        assert [late.name for late in worker.zygote.late] == ["package editable"]


@BOTH
def test_numpy_is_imported_once_and_works_after_the_fork(tmp_path: Path, level: str) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed (pip install .[dev])")
    (tmp_path / "numeric.py").write_text(NUMERIC)
    installed = Path(numpy.__file__).parent.parent
    with a_worker(tmp_path, packages=("numeric",), paths=[installed]) as worker:
        drivers = [worker.start(level, tenant_id=tenant_id) for tenant_id in (1, 2)]
        assert worker.zygote.late == ()
        assert [one.output("numeric.sum", {"count": 4}) for one in drivers] == [14.0, 14.0]
        drawn = [number for driver in drivers for number in driver.output("numeric.draw")]
        assert len(set(drawn)) == 4


def test_a_runner_never_collects_what_was_imported_before_the_fork(worker: Worker) -> None:
    """A collection would write to the pages that all runners share."""
    assert worker.start("shared").output("contract.frozen_objects") > 10_000


# --- the worker
def test_nothing_of_the_worker_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "curious.py").write_text(CURIOUS)
    monkeypatch.setenv("DATABASE_URL", "hunter2")
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with a_worker(tmp_path, packages=("curious",)) as worker:
            seen = worker.start("shared").output("curious.tell")
    names = set(seen["environ"]) - {name for name in seen["environ"] if name.endswith("_THREADS")}
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "HOME", "TMPDIR"}
    kinds = sorted(target.partition(":")[0].split(" ")[0] for target in seen["descriptors"])
    # Its stdin and stdout, the file for its last words, its socket to the worker; the source that is just imported.
    assert [kind for kind in kinds if kind not in {"/dev/null", "socket"}][1:] == []
    assert kinds.count("/dev/null") == 2
    assert kinds.count("socket") == 1


def test_with_a_killed_worker_ends_all_that_it_had(
    worker: Worker, tmp_path: Path, times: tuple[str, ...]
) -> None:
    worker.start("process")  # or it is skipped
    mounts = Path("/proc/self/mountinfo").read_text()
    module = "tests.integration.resources.runtimes.killed_host"
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [sys.executable, "-m", module, *times], stdout=subprocess.PIPE, text=True, env=environ
    ) as host:
        assert host.stdout is not None
        zygote = int(host.stdout.readline())
        assert len(sleepers(*times)) == 4
        assert list(tmp_path.glob(f"{PREFIX}*"))
        host.kill()
    wait_until(lambda: is_gone(zygote))
    wait_until(lambda: not sleepers(*times))
    wait_until(lambda: not list(tmp_path.glob(f"{PREFIX}*")))
    assert Path("/proc/self/mountinfo").read_text() == mounts
    found = find_cgroups().cgroups

    def is_swept() -> bool:
        """Empty groups are removed by the next sweep of any worker."""
        if found is not None:
            found.sweep()
        return cgroups(host.pid) == []

    wait_until(is_swept)
