"""resources.runtimes.folder and sweeping: folders of the dead go, those of the living and the newborn do not."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from resources.runtimes import folder
from resources.runtimes.emptying import open_folder
from resources.runtimes.folder import PREFIX, RuntimeFolder
from resources.runtimes.sweeping import FolderSweep


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def sweep() -> None:
    """As a worker does that has just started."""
    assert FolderSweep().turn() == []


def stale(temporary: Path) -> Path:
    """Make what a killed worker leaves."""
    path = temporary / f"{PREFIX}stale"
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "file").write_text("x")
    return path


def test_a_stale_folder_is_removed(temporary: Path) -> None:
    path = stale(temporary)
    sweep()
    assert not path.exists()


def test_a_held_folder_stays_until_it_is_removed() -> None:
    held = RuntimeFolder()
    sweep()
    assert held.path.is_dir()
    assert held.wipe()
    held.remove()
    held.remove()
    assert not held.path.exists()
    assert not held.wipe()


def test_wiping_keeps_the_folder_and_follows_no_link(temporary: Path) -> None:
    outside = temporary / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    held = RuntimeFolder()
    (held.path / "link").symlink_to(outside)
    (held.path / "sub").mkdir()
    assert held.wipe()
    assert list(held.path.iterdir()) == []
    assert (outside / "file").exists()
    held.remove()


def test_only_own_folders_are_swept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "isolane-test-other").mkdir()
    (temporary / f"{PREFIX}file").write_text("x")
    (temporary / f"{PREFIX}link").symlink_to(temporary / "isolane-test-other")
    before = sorted(temporary.iterdir())
    sweep()
    assert sorted(temporary.iterdir()) == before
    path = stale(temporary)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    sweep()
    assert path.is_dir()


@pytest.mark.parametrize("moment", ["before it is opened", "before it is locked"])
def test_a_sweep_while_a_folder_is_made_takes_none_away(
    monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real, swept = open_folder, []

    def open_racing(path: Path) -> int:
        monkeypatch.setattr(folder, "open_folder", real)
        if moment == "before it is opened":
            sweep()
        number = real(path)
        sweep()
        swept.append(path)
        return number

    monkeypatch.setattr(folder, "open_folder", open_racing)
    made = RuntimeFolder()
    assert made.path.is_dir()
    assert made.path not in swept
    sweep()
    assert made.path.is_dir()
    made.remove()


def test_the_lock_is_not_inherited_by_programs() -> None:
    held = RuntimeFolder()
    assert held._lock is not None
    assert fcntl.fcntl(held._lock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    held.remove()
