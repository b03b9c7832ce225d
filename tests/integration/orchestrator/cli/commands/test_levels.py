"""`isolane levels` on this machine, with real runtimes."""

import json

import pytest
from click.testing import CliRunner
from django.conf import LazySettings

from orchestrator.cli.commands.levels import levels
from resources.runtimes.base import Availability
from resources.runtimes.process import ProcessBackend


def test_each_level_is_tried_and_described() -> None:
    found = {
        report["level"]: report
        for report in json.loads(CliRunner().invoke(levels, ["--json"]).stdout)
    }
    assert list(found) == ["shared", "process", "docker", "kubernetes"]
    assert found["shared"]["available"]
    assert found["docker"] == {
        "level": "docker",
        "available": False,
        "reason": "this version has no such runtime",
        "facts": [],
    }
    if found["process"]["available"]:
        assert any(fact.startswith("Landlock") for fact in found["process"]["facts"])
    else:
        assert found["process"]["reason"]


def test_the_reason_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Availability(ok=False, reason="no namespaces (allow them)")
    monkeypatch.setattr(ProcessBackend, "availability", lambda self: refused)
    result = CliRunner().invoke(levels)
    assert result.exit_code == 0
    assert "process     not available: no namespaces (allow them)" in result.stdout.splitlines()


def test_without_any_level_it_fails(settings: LazySettings) -> None:
    settings.RUNTIMES = {}
    assert CliRunner().invoke(levels).exit_code == 1
