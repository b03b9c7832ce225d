"""`isolane folders`: what workers have left on this machine goes, and what stays is listed."""

import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.commands.folders import folders
from resources.runtimes import sweeping
from resources.runtimes.folder import PREFIX, RuntimeFolder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_is_left_goes_and_what_is_in_use_stays(temporary: Path) -> None:
    (temporary / f"{PREFIX}left").mkdir()
    held = RuntimeFolder()
    called = CliRunner().invoke(folders)
    assert called.exit_code == 0
    user = os.geteuid()
    assert called.output == f"No folder is left in {temporary} by workers of user {user}.\n"
    assert list(temporary.iterdir()) == [held.path]
    held.release()


def test_what_stays_is_listed_with_the_reason(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = temporary / f"{PREFIX}le\nft"
    left.mkdir()
    os.utime(left, (0, 0))
    monkeypatch.setattr(sweeping, "remove_held", lambda *_: "'d': Device or resource busy")
    called = CliRunner().invoke(folders)
    assert called.exit_code == 1
    told = "last changed 1970-01-01 00:00:00 UTC: 'd': Device or resource busy"
    assert called.output == f"{str(left)!a} {told}\n"


def test_those_of_others_are_named_and_not_touched(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = temporary / f"{PREFIX}left"
    left.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    called = CliRunner().invoke(folders)
    assert called.exit_code == 0
    assert called.output == f"'{left}': of another user, and perhaps in use; not looked at\n"
    assert left.is_dir()
