"""What a step sees at every level: its own run, and nothing of the worker or of other runs."""

import os
import secrets
import socket
from pathlib import Path

import pytest

from isolane.protocol import Grant, Resource
from tests.integration.resources.runtimes.conftest import Driver, wait_until
from tests.integration.resources.runtimes.contract.conftest import Start
from tests.integration.resources.runtimes.contract.levels import Clause

CHAT = Grant(
    name="chat",
    type="model",
    definition="d",
    scope="execution",
    config={"provider": "echo", "model": "m"},
    secrets={},
)
SECRETS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "PYTHONSTARTUP",
    "ISOLANE_CACHE_URL",
    "ISOLANE_SECRETS_DIR",
    "ISOLANE_SECRET_ACME__BILLING_PASSWORD",
)
GIVEN = {
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "HOME", "TMPDIR",
}  # fmt: skip


# --- the worker's
def test_no_variable_of_the_worker_is_inherited(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "hunter2")
    seen = Driver(start()).output("test.environment")
    for shown in seen.values():
        names = {line.partition("=")[0] for line in shown.splitlines()}
        assert names - {"_"} <= GIVEN
        assert "hunter2" not in shown


def test_no_descriptor_of_the_worker_is_inherited(start: Start, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        targets = Driver(start()).output("test.descriptors")
    kinds = [target.split(":")[0] for target in targets if "/proc/" not in target]
    # The pipes of the stream and for output, and copies of the three standard descriptors where they are restored.
    assert set(kinds) - {"/dev/null"} == {"pipe"}
    assert kinds.count("pipe") <= 6


# --- those of an earlier run
def test_files_and_changes_of_an_earlier_run_are_gone(start: Start) -> None:
    first = start()
    clean = Driver(first).output("test.find_traces")
    assert (clean["environ"], clean["variable"], clean["in_home"]) == (None, "unset", True)
    # A checkout below /tmp is shown where it is.
    assert clean["files"] in ([], [Path(__file__).parts[2]])
    Driver(first).output("test.leave_traces")
    first.close(5)
    assert Driver(start(execution_id="e2")).output("test.find_traces") == clean


@pytest.mark.clause(Clause.MODULES)
def test_module_state_of_an_earlier_run_is_gone(start: Start) -> None:
    first = start()
    Driver(first).output("test.patch_module")
    first.close(5)
    assert Driver(start(execution_id="e2")).output("test.read_module") == "tmp"


def test_module_state_of_another_tenant_is_never_seen(start: Start) -> None:
    first = start(tenant_id="acme")
    Driver(first).output("test.patch_module")
    first.close(5)
    assert Driver(start(tenant_id="globex")).output("test.read_module") == "tmp"


# --- those of other runs at the same time
@pytest.mark.clause(Clause.FILES)
def test_files_of_other_runs_are_not_seen(start: Start) -> None:
    acme, globex = Driver(start(tenant_id="acme")), Driver(start(tenant_id="globex"))
    path = acme.output("contract.keep_file", {"text": "of acme"})
    assert acme.output("contract.read_file", {"path": path}) == "of acme"
    assert globex.output("contract.read_file", {"path": path}) == ""


@pytest.mark.clause(Clause.PROCESSES)
def test_processes_of_other_runs_are_not_seen(start: Start, times: tuple[str, str]) -> None:
    acme, globex = Driver(start(tenant_id="acme")), Driver(start(tenant_id="globex"))
    acme.output("contract.start_processes", {"child": times[0], "daemon": times[1]})
    assert acme.output("contract.find_processes", {"seconds": times[0]})
    assert not globex.output("contract.find_processes", {"seconds": times[0]})


@pytest.mark.clause(Clause.NETWORK)
def test_no_network_is_reached(driver: Driver) -> None:
    name = f"isolane-test-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{name}")
        unix.listen()
        parameters = {"port": tcp.getsockname()[1], "abstract": name}
        assert driver.output("contract.connect", parameters) == []


# --- resources
def test_handles_are_reported_from_the_first_use_to_their_end(start: Start) -> None:
    heard: list[Resource] = []
    runtime = start(grants=(CHAT,), on_resource=heard.append)
    for step in ("one", "two", "two"):
        Driver(runtime).output("restless.use", step=step)
    assert runtime.close(5) == ()
    assert [(frame.event, frame.name, frame.step) for frame in heard] == [
        ("allocated", "chat", "one"),
        ("reused", "chat", "two"),
        ("disposed", "chat", ""),
    ]
    assert len({frame.resource_id for frame in heard}) == 1


def test_a_handle_that_is_not_reported_closed_is_an_error(start: Start) -> None:
    runtime = start(grants=(CHAT,))
    Driver(runtime).output("restless.hide_handle")
    assert runtime.close(5) == ("handles that were not closed: 1",)
    wait_until(lambda: not runtime.alive)


def test_what_was_not_granted_is_not_there(start: Start) -> None:
    start(tenant_id="acme", grants=(CHAT,))
    result = Driver(start(tenant_id="globex")).run("restless.use")
    assert result.status == "failed"
    assert "chat" in result.message
