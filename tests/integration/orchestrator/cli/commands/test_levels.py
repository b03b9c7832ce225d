"""`isolane levels` on this machine, with real runtimes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from django.conf import LazySettings

from orchestrator.cli.commands.levels import levels
from resources.runtimes.base import Availability
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import why_not
from tests.plugin import ROOT
from tests.requirements import give_up
from tests.without_namespaces import PREFIX

THREADED = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


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


def test_where_user_namespaces_are_forbidden_process_is_not_available_and_the_way_out_is_told() -> (
    None
):
    command = [*PREFIX, sys.executable, "-m", "orchestrator.cli", "levels", "--json"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {report["level"]: report for report in json.loads(told)}
    assert found["shared"]["available"]
    assert not found["process"]["available"]
    assert "making the namespaces: Operation not permitted" in found["process"]["reason"]
    assert "allow user namespaces: 'sysctl" in found["process"]["reason"]


def test_the_reason_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Availability(ok=False, reason="no namespaces (allow them)")
    monkeypatch.setattr(ProcessBackend, "availability", lambda self: refused)
    result = CliRunner().invoke(levels)
    assert result.exit_code == 0
    assert "process     not available: no namespaces (allow them)" in result.stdout.splitlines()


def test_without_any_level_it_fails(settings: LazySettings) -> None:
    settings.RUNTIMES = {}
    assert CliRunner().invoke(levels).exit_code == 1


def test_a_package_that_starts_threads_is_named_with_its_cost(
    settings: LazySettings, tmp_path: Path
) -> None:
    if reason := why_not(ProcessBackend):
        give_up(f"the level process is not available: {reason}")
    (tmp_path / "threaded.py").write_text(THREADED)
    tmp_path.chmod(0o755)  # a sandbox is another user's
    options = {"size": 1, "packages": ["threaded"], "paths": [str(tmp_path)]}
    settings.RUNTIMES = {"process": {**settings.RUNTIMES["process"], "OPTIONS": options}}
    result = CliRunner().invoke(levels)
    named = r"\n +package threaded starts 1 thread when it is imported, so each .* by itself: \d+ ms more\n"
    assert re.search(named, result.stdout), result.stdout
