"""isolane.descendants: how descendants are found, and where they cannot be known.

Nothing is ended here: that would take along what these tests themselves run on.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isolane import descendants

GRANDCHILD = (
    "import subprocess; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
)


def test_descendants_are_found_over_generations() -> None:
    child = subprocess.Popen([sys.executable, "-c", GRANDCHILD], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        grandchild = int(child.stdout.readline())
    try:
        assert descendants.descendants_of(child.pid) == [grandchild]
        assert {child.pid, grandchild} <= set(descendants.descendants_of(os.getpid()))
        assert os.getpid() not in descendants.descendants_of(os.getpid())
    finally:
        os.kill(grandchild, 9)
        child.wait()


def test_a_name_with_brackets_confuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid, stat in {"5": "5 (a) S 1 (b) S 4 5", "6": "", "self": "7 (x) S 4"}.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(stat)
    monkeypatch.setattr(descendants, "_PROC", tmp_path)
    assert descendants.descendants_of(4) == [5]


def test_without_proc_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descendants, "_PROC", Path("/nowhere"))
    assert descendants.descendants_of(os.getpid()) == []


def test_elsewhere_orphans_are_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not descendants.adopt_orphans()


def test_a_library_without_prctl_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descendants, "c_library", object)
    assert not descendants.adopt_orphans()
