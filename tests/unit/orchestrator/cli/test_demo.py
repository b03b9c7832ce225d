"""The demo fails when a run does or when a process is left behind."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from orchestrator.cli.http import Client

# The module's command has the same name.
module = import_module("orchestrator.cli.demo")


@pytest.mark.parametrize(
    ("states", "left", "complaint"),
    [
        (["succeeded", "succeeded"], 0, ""),
        (["succeeded", "failed"], 0, "1 runs did not succeed, 0 processes were left."),
        (["timed_out", "cancelled"], 0, "2 runs did not succeed, 0 processes were left."),
        (["succeeded"], 3, "0 runs did not succeed, 3 processes were left."),
    ],
)
def test_what_is_complained_about(states: list[str], left: int, complaint: str) -> None:
    assert module.complain(states, left=left) == complaint


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    """One that outlives the stack."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield psutil.Process(started.pid)
        started.kill()


class NoStack:
    """A platform of which nothing is started."""

    def start_processes(self, _workers: int) -> None:
        """Start none."""


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command's exit code and output, with its platform and its runs left out."""

    @contextmanager
    def running_stack(*_: object) -> Iterator[NoStack]:
        yield NoStack()

    def run(state: str, started: list[psutil.Process]) -> tuple[int, str]:
        client = Client(base_url="", api_key="")
        followed = [module.Followed("acme", client, {"id": "1", "state": state, "outputs": {}})]
        monkeypatch.setenv("ISOLANE_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(module, "running_stack", running_stack)
        monkeypatch.setattr(module, "prepare_platform", lambda _: None)
        monkeypatch.setattr(module, "_submit", lambda _: followed)
        monkeypatch.setattr(module, "_follow", lambda *_: None)
        monkeypatch.setattr(module, "_started", lambda: started)
        result = CliRunner().invoke(module.demo)
        return result.exit_code, result.output

    return run


def test_all_well(demo: Any) -> None:
    assert demo("succeeded", [])[0] == 0


def test_a_failed_run_is_exit_1(demo: Any) -> None:
    code, output = demo("failed", [])
    assert (code, "1 runs did not succeed, 0 processes" in output) == (1, True)


def test_a_leftover_process_is_exit_1(demo: Any, process: psutil.Process) -> None:
    code, output = demo("succeeded", [process])
    assert (code, "0 runs did not succeed, 1 processes" in output) == (1, True)
