"""`isolane status` shows what runs, and no password."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.commands.stack import status
from orchestrator.embedded.state import StackState, own_start_time, write_state


def running(home: Path, cache_address: str) -> None:
    state = StackState(
        pid=os.getpid(),
        started_at=own_start_time(),
        cache_address=cache_address,
        environment={"ISOLANE_CACHE_URL": "redis://:hunter2@127.0.0.1:7001/0"},
        children={"run-cache": os.getpid()},
    )
    write_state(home / "state.json", state)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOLANE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1:7001", "Run cache 127.0.0.1:7001"),
        ("", "Run cache none: set ISOLANE_CACHE_URL"),
    ],
)
def test_the_run_cache_is_shown(home: Path, address: str, shown: str) -> None:
    running(home, address)
    result = CliRunner().invoke(status)
    assert (result.exit_code, shown in result.output) == (0, True), result.output
    assert "hunter2" not in result.output


def test_programs_are_told_its_address_alone(home: Path) -> None:
    running(home, "127.0.0.1:7001")
    result = CliRunner().invoke(status, ["--json"])
    assert json.loads(result.output)["cache_address"] == "127.0.0.1:7001"
    assert "hunter2" not in result.output
