"""The guard of a sandbox, at moments that are hard to hit."""

from pathlib import Path

import pytest

from resources.runtimes.base import RuntimeStartError
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import why_not

# Runners end at once, and their guard gets ready to hear of it only afterwards.
PACKAGE = """
import os
from isolane.sandbox import guard

wake_at_child = guard._wake_at_child

def wake_too_late():
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    return wake_at_child()

guard._wake_at_child = wake_too_late
guard.Guard._become_runner = lambda self: os._exit(7)
"""


def test_a_runner_that_ends_before_its_guard_listens_is_noticed(tmp_path: Path) -> None:
    if reason := why_not(ProcessBackend):
        pytest.skip(f"the level is not available: {reason}")
    (tmp_path / "brief_nodes.py").write_text(PACKAGE)
    backend = ProcessBackend(level="process", size=1, packages=["brief_nodes"], paths=[tmp_path])
    try:
        with pytest.raises(RuntimeStartError, match="exit code 7"):
            backend.describe()
    finally:
        backend.stop()
