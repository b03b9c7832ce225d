"""The demo fails when a run does, or when a process or something of a resource is left behind."""

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

from orchestrator.cli.support.api_client import ApiClient

# The module's command has the same name.
module = import_module("orchestrator.cli.commands.demo")


NOTHING = "0 runs did not succeed, 0 processes were left, 0 runs have left"


@pytest.mark.parametrize(
    ("states", "left", "unclean", "complaint"),
    [
        (["succeeded", "failed"], 0, 0, NOTHING.replace("0 runs did", "1 runs did")),
        (["timed_out", "cancelled"], 0, 0, NOTHING.replace("0 runs did", "2 runs did")),
        (["succeeded"], 3, 0, NOTHING.replace("0 processes", "3 processes")),
        (["succeeded"], 0, 2, NOTHING.replace("0 runs have", "2 runs have")),
    ],
)
def test_what_is_complained_about(
    states: list[str], left: int, unclean: int, complaint: str
) -> None:
    told = module.complain(states, left=left, unclean=unclean)
    assert told == f"{complaint} something of their resources."


def test_nothing_is_complained_about() -> None:
    assert module.complain(["succeeded", "succeeded"], left=0, unclean=0) == ""


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

    def run(state: str, started: list[psutil.Process], *, unclean: int = 0) -> tuple[int, str]:
        client = ApiClient(base_url="", api_key="")
        one = {"id": "1", "state": state, "outputs": {}, "code": "TIMEOUT", "message": "too slow"}
        followed = [module.FollowedRun("acme", client, one)]
        monkeypatch.setenv("ISOLANE_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(module, "running_stack", running_stack)
        monkeypatch.setattr(module, "prepare_platform", lambda _: None)
        monkeypatch.setattr(module, "start_customer", lambda _: None)
        monkeypatch.setattr(module, "_submit", lambda *_: followed)
        monkeypatch.setattr(module, "_follow", lambda *_: None)
        monkeypatch.setattr(module, "_explain", lambda *_: None)
        monkeypatch.setattr(module, "_show_connections", lambda *_: None)
        monkeypatch.setattr(module, "_show_resources", lambda *_: unclean)
        monkeypatch.setattr(module, "_started", lambda: started)
        result = CliRunner().invoke(module.demo)
        return result.exit_code, result.output

    return run


def test_all_well(demo: Any) -> None:
    assert demo("succeeded", [])[0] == 0


def test_a_failed_run_is_exit_1(demo: Any) -> None:
    code, output = demo("failed", [])
    assert (code, "1 runs did not succeed, 0 processes" in output) == (1, True)
    assert "acme 1 TIMEOUT: too slow" in output


def test_a_leftover_process_is_exit_1(demo: Any, process: psutil.Process) -> None:
    code, output = demo("succeeded", [process])
    assert (code, "0 runs did not succeed, 1 processes" in output) == (1, True)


def test_a_run_that_leaves_something_is_exit_1(demo: Any) -> None:
    code, output = demo("succeeded", [], unclean=1)
    assert (code, "1 runs have left something" in output) == (1, True)


class Stories(ApiClient):
    """Answers with a story."""

    def explanation(self, public_id: str) -> dict[str, Any]:
        """Of one event."""
        event = {"at": "2026-03-04T10:02:11.120000Z", "text": f"{public_id} was submitted."}
        return {"results": [event], "now": "It ended\x1b[2J."}


def test_the_story_of_the_run_that_asks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    client = Stories(base_url="", api_key="")
    followed = [
        module.FollowedRun("acme", client, {"id": "other", "blueprint": "order"}),
        module.FollowedRun("acme", client, {"id": "asks", "blueprint": "approval"}),
    ]
    module._explain(followed)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "    10:02:11.120  asks was submitted.",
        r"    It ended\u001b[2J.",
    ]


def test_what_a_run_has_reached_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    class Connected(ApiClient):
        def explanation(self, public_id: str) -> dict[str, Any]:
            """As the API answers."""
            at = "2026-01-02T03:04:05.678+00:00"
            kinds = ("run.succeeded", "connection.closed")
            return {"results": [{"at": at, "kind": kind, "text": f"{kind}."} for kind in kinds]}

    client = Connected(base_url="http://none.invalid", api_key="k")
    followed = [
        module.FollowedRun("acme", client, {"id": f"exec_{name}", "blueprint": name})
        for name in ("order", "billing", "billing")
    ]
    module._show_connections(followed)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("  acme exec_billing reached")
    assert [line.split()[-1] for line in rest] == ["connection.closed."]
    module._show_connections(followed[:1])
    assert capsys.readouterr().out == ""


def ledger(*, clean: bool) -> dict[str, Any]:
    """As the API answers."""
    row = {
        "resource_id": "exec:1:notes:",
        "type": "cache.keys",
        "definition": "notes",
        "step": "",
        "ended": "disposed" if clean else "",
        "duration_s": 0.25 if clean else None,
    }
    balance = {"clean": clean, "allocated": 1, "disposed": int(clean)}
    return {"execution_id": "1", "tenant_id": "acme", "results": [row], "balance": balance}


class Ledgers(ApiClient):
    """Answers with a ledger."""

    def resources(self, public_id: str) -> dict[str, Any]:
        """Clean but for one run."""
        return ledger(clean=public_id != "unclean")


@pytest.mark.parametrize(
    ("run", "left", "unclean"),
    [("well", 0, 0), ("unclean", 0, 1), ("well", 3, 1), ("unclean", 2, 1)],
)
def test_a_run_is_unclean_by_its_ledger_or_by_what_the_remote_servers_have(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: str,
    left: int,
    unclean: int,
) -> None:
    class RemoteServers:
        def __init__(self, *_: object) -> None:
            pass

        def connections(self, _run: str) -> int:
            return 1

        def left(self, found: str) -> dict[str, int]:
            return {"roles": left if found == run else 0}

    monkeypatch.setattr(module, "RemoteServers", RemoteServers)
    client = Ledgers(base_url="", api_key="")
    followed = [
        module.FollowedRun("acme", client, {"id": "other", "blueprint": "order"}),
        module.FollowedRun("acme", client, {"id": run, "blueprint": "billing"}),
        module.FollowedRun("globex", client, {"id": "theirs", "blueprint": "billing"}),
    ]
    assert module._show_resources(followed, object()) == unclean
    assert f"left: {left} roles" in capsys.readouterr().out
