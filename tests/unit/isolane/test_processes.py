"""isolane.processes: who is whose descendant, and where that cannot be known.

Nothing is ended here: that would take along what these tests themselves run on.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isolane import processes

GRANDCHILD = (
    "import subprocess; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
)


def test_descendants_are_found_over_generations() -> None:
    child = subprocess.Popen([sys.executable, "-c", GRANDCHILD], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        grandchild = int(child.stdout.readline())
    try:
        assert processes.descendants(child.pid) == [grandchild]
        assert {child.pid, grandchild} <= set(processes.descendants(os.getpid()))
        assert os.getpid() not in processes.descendants(os.getpid())
    finally:
        os.kill(grandchild, 9)
        child.wait()


def test_a_name_with_brackets_confuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid, stat in {"5": "5 (a) S 1 (b) S 4 5", "6": "", "self": "7 (x) S 4"}.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(stat)
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert processes.descendants(4) == [5]


def test_without_proc_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", Path("/nowhere"))
    assert processes.descendants(os.getpid()) == []


def test_elsewhere_orphans_are_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not processes.adopt_orphans()


def test_a_library_without_prctl_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not processes.adopt_orphans()
