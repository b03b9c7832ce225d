"""resources.runtimes.folder: the folders of a worker that was killed, and their removal."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import isolane
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import is_gone, wait_until

WORKER = """
import json, sys, time
from resources.runtimes.shared import SharedBackend
from tests.placements import ACME, a_placement
runtime = SharedBackend(level="shared", size=1).start(a_placement(), identity=ACME)
runtime.open()
print(json.dumps({"pid": runtime.pid, "folder": str(runtime._child._folder.path)}), flush=True)
time.sleep(60)
"""


class Worker:
    """A process that holds one runtime."""

    def __init__(self, temporary: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            cwd=Path(isolane.__file__).parent.parent,
            env={"TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            told = json.loads(stdout.readline())
        self.runner, self.folder = int(told["pid"]), Path(told["folder"])

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.kill()
        self.process.wait()
        wait_until(lambda: is_gone(self.runner))


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Worker]]:
    """Two workers with one temporary directory, which is that of the test, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    both = [Worker(tmp_path), Worker(tmp_path)]
    yield both
    for worker in both:
        worker.kill()


def test_a_new_backend_removes_what_a_killed_worker_left(workers: list[Worker]) -> None:
    killed, living = workers
    killed.kill()
    assert killed.folder.is_dir()
    SharedBackend(level="shared", size=1)
    assert not killed.folder.exists()
    assert living.folder.is_dir()
    assert not is_gone(living.runner)
