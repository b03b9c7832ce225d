"""A pool in a temporary directory of the test's own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.resources.runtimes.teardown.pool import Pool


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """With quick runners, and its watchdog."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pool = Pool(tmp_path, monkeypatch)
    yield pool
    pool.backend.stop()
