"""orchestrator.embedded.predecessors: the processes in a directory, beside those that cannot be inspected."""

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.embedded.predecessors import processes_in


class Process:
    """One of the system's processes, as psutil shows it."""

    def __init__(self, cwd: str | Exception) -> None:
        self.info = {"name": "valkey-server"}
        self._cwd = cwd

    def cwd(self) -> str:
        """Tell, or fail to."""
        if isinstance(self._cwd, Exception):
            raise self._cwd
        return self._cwd


def test_a_process_in_a_directory_too_deep_to_tell_is_no_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = OSError(36, os.strerror(36))
    ours: Any = Process(str(tmp_path))
    others = [Process(deep), Process(psutil.AccessDenied(1)), Process("/")]
    monkeypatch.setattr(psutil, "process_iter", lambda _: [*others, ours])
    assert processes_in(tmp_path, "valkey-server") == [ours]
