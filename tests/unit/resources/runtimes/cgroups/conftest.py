"""The fake kernel of these tests."""

from pathlib import Path

import pytest

from tests.unit.resources.runtimes.cgroups.kernel import Kernel


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel without any cgroup mounted yet."""
    return Kernel(tmp_path, monkeypatch)
