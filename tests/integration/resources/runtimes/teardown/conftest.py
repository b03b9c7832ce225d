"""A pool in a temporary directory of the test's own."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.runtimes.emptying import empty, open_folder
from tests.integration.resources.runtimes.teardown.pool import Pool


@pytest.fixture
def temporary(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The temporary directory, if possible in memory: a disk takes ten times as long for thousands of directories."""
    tmp_path_factory.getbasetemp()  # made now, or it would be made in the test's own
    memory = "/dev/shm"
    parent = memory if os.access(memory, os.W_OK | os.X_OK) else tempfile.gettempdir()
    path = Path(tempfile.mkdtemp(dir=parent, prefix="isolane-test-"))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    opened = open_folder(path)
    empty(opened)
    os.close(opened)
    path.rmdir()


@pytest.fixture
def pool(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """With quick runners, and its watchdog."""
    pool = Pool(temporary, monkeypatch)
    yield pool
    pool.backend.stop()
