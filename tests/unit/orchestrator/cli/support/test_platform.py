"""A command that finds no platform says why."""

from pathlib import Path

import pytest

from foundation.errors import Unavailable
from orchestrator.cli.support import platform
from orchestrator.embedded.errors import EmbeddedError


@pytest.fixture(autouse=True)
def no_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISOLANE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "has_platform", lambda: False)


def test_there_is_none() -> None:
    with pytest.raises(Unavailable, match="No platform runs here"):
        platform.require_platform()


def test_there_may_be_one_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)  # root may read everything
    with pytest.raises(EmbeddedError, match="another user's stack"):
        platform.require_platform()
