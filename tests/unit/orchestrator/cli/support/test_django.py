"""orchestrator.cli.support.django: a terminal is quiet, what it starts is not."""

import os

import pytest

from orchestrator.cli.support.django import setup_django


@pytest.mark.parametrize(("given", "own"), [(None, "ERROR"), ("INFO", "INFO")])
def test_the_terminals_log_level_is_its_own(
    monkeypatch: pytest.MonkeyPatch, given: str | None, own: str
) -> None:
    if given is None:
        monkeypatch.delenv("ISOLANE_LOG_LEVEL", raising=False)
    else:
        monkeypatch.setenv("ISOLANE_LOG_LEVEL", given)
    seen: list[str] = []
    monkeypatch.setattr("django.setup", lambda: seen.append(os.environ["ISOLANE_LOG_LEVEL"]))
    setup_django()
    assert seen == [own]
    assert os.environ.get("ISOLANE_LOG_LEVEL") == given
