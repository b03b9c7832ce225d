"""Steps at every level: what they see and say, and what they come to."""

import os

import pytest

from isolane.protocol import Log, Progress
from isolane.results import Code
from resources.runtimes.base import RuntimeBackend
from tests.integration.resources.runtimes.conftest import Driver
from tests.integration.resources.runtimes.contract.conftest import NODES, TASKS, Build, Start
from tests.placements import run_id


def test_the_catalogue_describes_all_nodes(backend: RuntimeBackend) -> None:
    catalogue = backend.describe()
    nodes = {node.name: node for node in catalogue.nodes}
    assert {"data.map", "test.add"} <= set(nodes)
    assert nodes["test.identity"].idempotent
    assert nodes["test.add"].parameters["required"] == ["a"]
    assert set(catalogue.packages) == {"isolane", *NODES, *TASKS}
    assert catalogue.python.startswith("3.")


def test_a_step_sees_its_identity(driver: Driver) -> None:
    output = driver.output("test.identity")
    assert 25 < output.pop("remaining") <= 30
    assert output.pop("random") == pytest.approx(0.32383276483316237)
    assert output.pop("pid") != os.getpid()
    assert output == {
        "execution_id": str(run_id("e1")),
        "tenant_id": "acme",
        "user_id": "ada",
        "request_id": "r1",
        "epoch": 1,
        "step": "pay",
        "attempt": 0,
        "idempotency_key": "key",
        "cancelled": False,
    }


def test_a_step_sees_and_sets_variables_of_its_own_run_only(start: Start) -> None:
    for tenant, seen in (("acme", {"a": [1]}), ("globex", {})):
        result = Driver(start(tenant)).run(
            "test.variables", {"changes": {"b": tenant}}, variables=seen
        )
        assert (result.output, result.variables, result.pause_s) == (seen, {"b": tenant}, 60.0)


def test_a_step_that_fails_sets_nothing(driver: Driver) -> None:
    result = driver.run("test.variables", {"changes": {"b": 2}, "fail": True})
    assert (result.code, result.variables, result.pause_s) == (Code.TRANSIENT_ERROR, {}, 0.0)
    assert driver.output("test.variables", {"changes": {}}) == {}


def test_variables_have_a_limit_together(driver: Driver) -> None:
    result = driver.run("test.variables", {"changes": {"a": "x" * 2**19, "b": "x" * 2**19}})
    assert result.code is Code.OUTPUT_TOO_LARGE
    assert result.message.startswith("node test.variables set variables with 10485")


@pytest.mark.parametrize(
    ("uses", "parameters", "first"),
    [
        ("test.raise_error", {"kind": "value"}, "in raise_error"),
        ("test.raise_later", {}, "in raise_later"),
        ("task:tests.nodes.tasks.work.owned", {"text": ""}, "in owned"),
    ],
)
def test_a_trace_begins_in_the_code_of_the_author(
    driver: Driver, uses: str, parameters: dict[str, str], first: str
) -> None:
    result = driver.run(uses, parameters)
    assert (result.code, result.message) == (
        Code.UNKNOWN_ERROR,
        f"ValueError in node {uses}",
    )
    head, frame, *_, last = result.trace.splitlines()
    assert head == "Traceback (most recent call last):"
    assert "tests/nodes" in frame
    assert frame.endswith(first)
    assert last == "ValueError: password=hunter2"


def test_functions_and_celery_tasks_are_nodes(driver: Driver) -> None:
    output = driver.output
    assert output("task:tests.nodes.tasks.price", {"items": ["a", "b"]}) == {
        "total": 5.0,
        "note": None,
    }
    assert output("task:tests.nodes.tasks.later", {"text": "x"}) == "x"
    assert output("task:tests.nodes.tasks.work.shared", {"a": 2}) == 3
    assert output("task:tests.nodes.tasks.work.owned", {"text": "up"}) == "UP"
    refused = driver.run("task:tests.nodes.tasks.work.shared", {"a": "2"})
    assert refused.message.endswith("parameter a: expected integer, got string")
    assert driver.run("task:os.getcwd").code is Code.SKILL_NOT_FOUND


def test_only_functions_that_can_be_called_by_name_are_listed(build: Build) -> None:
    backend = build(packages=(), tasks=["tests.nodes.tasks", "tests.nodes.tasks.work"])
    catalogue = backend.describe()
    prefix = "task:tests.nodes.tasks."
    names = [node.name.removeprefix(prefix) for node in catalogue.nodes if ":" in node.name]
    assert names == ["alias", "due", "later", "price", "work.owned", "work.shared"]
    assert {"tests.nodes.tasks", "isolane"} <= set(catalogue.packages)


def test_an_async_step_runs_on_the_loop_of_its_execution(driver: Driver) -> None:
    assert driver.output("test.add", {"a": 2}) == 3
    assert driver.output("test.loop") == driver.output("test.loop")
    assert driver.runtime.close(5) == ()


def test_built_in_nodes_are_there(driver: Driver) -> None:
    assert driver.output("data.map", {"values": {"a": [1]}}) == {"a": [1]}


def test_what_a_step_says_is_relayed(driver: Driver) -> None:
    driver.output("test.speak")
    logs = [(f.level, f.message) for f in driver.frames if isinstance(f, Log)]
    assert logs == [
        ("info", "printed"),
        ("info", "and more"),
        ("warning", "on stderr"),
        ("error", "logged well"),
        ("debug", "by context"),
        ("info", "from C"),
        ("info", "raw bytesno end"),
    ]
    progress = [f for f in driver.frames if isinstance(f, Progress)]
    assert progress == [Progress(step="pay", fraction=0.5, message="half")]


def test_a_forked_process_cannot_write_to_the_stream(driver: Driver) -> None:
    assert driver.output("test.speak_from_fork") == 0
    (line,) = driver.frames
    assert isinstance(line, Log)  # of the parent, which read what the child printed
    assert line.message == "from the fork"
    assert driver.output("test.add", {"a": 1}) == 2


@pytest.mark.parametrize(
    ("uses", "parameters", "code", "message"),
    [
        ("test.nothing", {}, Code.SKILL_NOT_FOUND, "this runtime has no node test.nothing"),
        (
            "test.add",
            {"a": "x"},
            Code.POLICY_VIOLATION,
            "node test.add, parameter a: expected integer, got string",
        ),
        (
            "test.raise_error",
            {"kind": "value"},
            Code.UNKNOWN_ERROR,
            "ValueError in node test.raise_error",
        ),
        (
            "test.raise_error",
            {"kind": "exit"},
            Code.UNKNOWN_ERROR,
            "SystemExit in node test.raise_error",
        ),
        (
            "test.raise_error",
            {"kind": "interrupt"},
            Code.UNKNOWN_ERROR,
            "KeyboardInterrupt in node test.raise_error",
        ),
        ("test.raise_error", {"kind": "step"}, Code.RATE_LIMIT_ERROR, "slow down"),
        (
            "test.output",
            {"kind": "large"},
            Code.OUTPUT_TOO_LARGE,
            "node test.output returned 1048578 bytes of JSON, over the limit of 1048576",
        ),
        (
            "test.output",
            {"kind": "set"},
            Code.POLICY_VIOLATION,
            "node test.output returned what cannot be kept: not JSON: set is not a JSON type",
        ),
    ],
)
def test_a_failure_is_a_result_and_the_runtime_lives_on(
    driver: Driver, uses: str, parameters: dict[str, str], code: Code, message: str
) -> None:
    result = driver.run(uses, parameters)
    assert (result.status, result.code, result.message) == ("failed", code, message)
    assert driver.output("test.add", {"a": 1}) == 2


@pytest.mark.parametrize("kind", ["nul", "nan"])
def test_output_that_cannot_be_stored_is_refused(driver: Driver, kind: str) -> None:
    assert driver.run("test.output", {"kind": kind}).code is Code.POLICY_VIOLATION
