"""The command, called in this process."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import cli
from orchestrator.cli.support.django import CONSOLE

Isolane = Callable[..., Result]


@pytest.fixture
def isolane(database: None, monkeypatch: pytest.MonkeyPatch) -> Isolane:
    """Call `isolane …`; errors come out, since turning them into a line is the root's own part."""
    monkeypatch.setattr(CONSOLE, "width", 200)  # so that no terminal wraps a table

    def call(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=typed, catch_exceptions=False)

    return call
