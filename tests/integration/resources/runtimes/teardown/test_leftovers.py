"""Real runners and what steps leave: no slot, runner or start of a worker is lost to it, and the folders go."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import isolane
from resources.placement import Placement
from resources.runtimes import folder as folders
from resources.runtimes.base import RunIdentity
from resources.runtimes.folder import PREFIX, RuntimeFolder
from resources.runtimes.shared import SharedBackend, SharedRuntime
from resources.runtimes.sweeping import FolderSweep
from tests.debris import DEBRIS, fill, nest
from tests.integration.resources.runtimes.conftest import PACKAGES, Driver, is_gone, wait_until
from tests.placements import ACME, a_placement

PLACEMENT = a_placement()
OTHER = a_placement("e2", tenant_id=2)
NAMES = {1: ACME, 2: RunIdentity(tenant="globex")}
SOURCE = Path(isolane.__file__).parent.parent
# What root may do against the modes of files is taken from this process and all that it starts.
WITHOUT_PRIVILEGES = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
if os.geteuid() == 0:
    for number in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
        assert libc.prctl(24, number, 0, 0, 0) == 0
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
SWEEP = """
import sys
from pathlib import Path
from resources.runtimes.base import RunIdentity
from resources.runtimes.folder import PREFIX, RuntimeFolder
from resources.runtimes.sweeping import FolderSweep
from tests.debris import DEBRIS
kinds = ("mode 000", "read-only", "itself mode 000", "bushy")
for kind in kinds:
    stale = Path(sys.argv[1]) / f"{PREFIX}{kind}"
    stale.mkdir()
    DEBRIS[kind](stale)
    held = RuntimeFolder()
    DEBRIS[kind](held.path)
    print(kind, held.wipe(), len(list(held.path.iterdir())))
    DEBRIS[kind](held.path)
    held.release()
print(FolderSweep().turn(), len(list(Path(sys.argv[1]).iterdir())))
"""


@pytest.fixture
def small(temporary: Path) -> Iterator[SharedBackend]:
    """A pool of one: a slot that is lost is missed at once. Descriptors as in a container."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20_000)), hard))
    pool = SharedBackend(level="shared", size=1, packages=PACKAGES)
    yield pool
    pool.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def opened(pool: SharedBackend, placement: Placement = PLACEMENT) -> SharedRuntime:
    runtime = pool.start(placement, identity=NAMES[placement.tenant_id])
    assert isinstance(runtime, SharedRuntime)
    runtime.open()
    return runtime


def test_a_worker_starts_whatever_lies_in_its_temporary_directory(temporary: Path) -> None:
    for number, debris in enumerate(DEBRIS.values()):
        (temporary / f"{PREFIX}{number}").mkdir()
        debris(temporary / f"{PREFIX}{number}")
    deepest = temporary / f"{PREFIX}deepest"
    deepest.mkdir()
    nest(deepest, 5_000)
    file, link, fifo = (temporary / f"{PREFIX}{kind}" for kind in ("file", "link", "fifo"))
    kept = {file, link, fifo}
    file.touch()
    link.symlink_to("/")
    os.mkfifo(fifo)
    if os.geteuid() == 0:
        foreign = temporary / f"{PREFIX}foreign"
        foreign.mkdir()
        os.chown(foreign, 65_534, 65_534)
        kept.add(foreign)
    backend = SharedBackend(level="shared", size=1)
    assert backend.describe().nodes
    backend.stop()

    def is_swept() -> bool:
        backend.sweep()
        return set(temporary.iterdir()) == kept

    wait_until(is_swept, 30)


def test_a_teardown_that_ends_by_a_real_time_signal_frees_its_slot(small: SharedBackend) -> None:
    runtime = opened(small)
    Driver(runtime).output("test.die_on_close", {"number": 35})
    (error,) = runtime.close(5)
    assert error == "no Closed came, it died: signal 35"
    assert is_gone(runtime.pid)
    another = opened(small, OTHER)
    assert Driver(another).output("test.identity")["tenant_id"] == "globex"
    another.close(5)


def test_a_step_that_leaves_deep_folders_costs_no_slot(
    small: SharedBackend, temporary: Path
) -> None:
    runtime = opened(small)
    Driver(runtime).output("test.leave_folders", {"levels": 1_100})
    before = descriptors()
    assert runtime.close(5) == ()
    assert descriptors() <= before
    another = opened(small, OTHER)
    another.kill()
    another.close(5)
    small.sweep()
    (idle,) = small._pool.idle
    assert list(temporary.iterdir()) == [idle._folder.path]
    assert list(idle._folder.path.iterdir()) == []


def test_a_dead_runner_that_nobody_gave_back_takes_no_slot_and_is_reported(
    small: SharedBackend, caplog: pytest.LogCaptureFixture
) -> None:
    forgotten = opened(small)
    os.kill(forgotten.pid, 35)
    wait_until(forgotten._child.ended)
    another = opened(small, OTHER)
    another.kill()
    another.close(5)
    small.sweep()
    assert small._pool.retired == set()
    told = [line for line in caplog.records if line.__dict__.get("event") == "RUNTIMES_FORGOTTEN"]
    assert [line.getMessage() for line in told] == ["1 dead runtimes were not given back"]
    assert forgotten.close(5) == ()


def test_a_folder_that_takes_too_long_ends_the_runner_and_is_left_for_the_sweep(
    small: SharedBackend,
    temporary: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs = tmp_path_factory.mktemp("program") / "hangs.py"
    hangs.write_text("import time\ntime.sleep(60)")
    runtime = opened(small)
    fill(runtime._child._folder.path, 1_200)
    began = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_PROGRAM", str(hangs))
        patch.setattr(folders, "EMPTY_SECONDS", 0.1)
        patch.setattr(folders, "_GRACE_SECONDS", 0.1)
        assert runtime.close(5) == ()
    assert time.monotonic() - began < 5
    assert is_gone(runtime.pid)
    assert small._pool.busy == small._pool.retired == set()
    (left,) = temporary.iterdir()
    small.sweep()
    assert not left.exists()


def test_without_privileges_modes_keep_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PRIVILEGES, "-c", SWEEP, str(tmp_path)]
    environ = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "mode 000 True 0",
        "read-only True 0",
        "itself mode 000 True 0",
        "bushy True 0",
        "[] 0",
    ], done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may protect files so")
def test_what_is_immutable_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not shutil.which("chattr"):
        pytest.skip("no chattr here")
    held = RuntimeFolder()
    (held.path / "d").mkdir()
    (held.path / "d" / "file").touch()
    paths = (held.path / "d" / "file", held.path / "d", held.path)
    protect = ["chattr", "+i", *map(str, paths)]
    if subprocess.run(protect, check=False, capture_output=True).returncode:
        pytest.skip("this file system has no such attribute")
    held.release()
    assert not held.path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_what_is_mounted_inside_is_not_touched(temporary: Path) -> None:
    outside, held = temporary / "outside", RuntimeFolder()
    for path in (outside / "sub", held.path / "a" / "b", held.path / "c"):
        path.mkdir(parents=True)
    (outside / "sub" / "file").touch()
    script = (
        f"mount --bind {outside} {held.path}/a/b && mount --bind {outside} {held.path}/c"
        f" && {sys.executable} {folders._PROGRAM} 5 {held._lock}"
    )
    assert held._lock is not None
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        pass_fds=[held._lock], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    assert done.stdout.endswith(": Device or resource busy")
    assert (outside / "sub" / "file").exists()
    # Where it is not mounted, it is only an empty directory.
    held.release()
    assert list(temporary.iterdir()) == [outside]
    assert FolderSweep().turn() == []
