"""resources.runtimes.shared: steps in real processes, and the pool around them."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isolane.protocol import Log, Progress
from isolane.results import Code
from resources.runtimes.base import Placement, PoolExhaustedError, RuntimeStartError
from resources.runtimes.shared import SharedBackend, SharedRuntime
from tests.integration.resources.runtimes.conftest import (
    PACKAGES,
    Driver,
    Start,
    is_gone,
    number_of,
    wait_until,
)

PLACEMENT = Placement(tenant_id="acme", tenant_number=1, execution_id="e1", epoch=1)


def test_the_catalogue_describes_all_nodes(backend: SharedBackend) -> None:
    catalogue = backend.describe()
    nodes = {node.name: node for node in catalogue.nodes}
    assert {"data.map", "test.add"} <= set(nodes)
    assert nodes["test.identity"].idempotent
    assert nodes["test.add"].parameters["required"] == ["a"]
    assert set(catalogue.packages) == {"isolane", *PACKAGES}
    assert catalogue.python.startswith("3.")


def test_a_step_sees_its_identity(driver: Driver) -> None:
    output = driver.output("test.identity")
    assert 25 < output.pop("remaining") <= 30
    assert output.pop("random") == pytest.approx(0.32383276483316237)
    assert output.pop("pid") != os.getpid()
    assert output == {
        "execution_id": "e1",
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
    task_driver: Driver, uses: str, parameters: dict[str, str], first: str
) -> None:
    result = task_driver.run(uses, parameters)
    assert (result.code, result.message) == (
        Code.UNKNOWN_ERROR,
        f"ValueError in node {uses}",
    )
    head, frame, *_, last = result.trace.splitlines()
    assert head == "Traceback (most recent call last):"
    assert "tests/nodes" in frame
    assert frame.endswith(first)
    assert last == "ValueError: password=hunter2"


def test_functions_and_celery_tasks_are_nodes(task_driver: Driver) -> None:
    output = task_driver.output
    assert output("task:tests.nodes.tasks.price", {"items": ["a", "b"]}) == {
        "total": 5.0,
        "note": None,
    }
    assert output("task:tests.nodes.tasks.later", {"text": "x"}) == "x"
    assert output("task:tests.nodes.tasks.work.shared", {"a": 2}) == 3
    assert output("task:tests.nodes.tasks.work.owned", {"text": "up"}) == "UP"
    refused = task_driver.run("task:tests.nodes.tasks.work.shared", {"a": "2"})
    assert refused.message.endswith("parameter a: expected integer, got string")
    assert task_driver.run("task:os.getcwd").code is Code.SKILL_NOT_FOUND


def test_only_functions_that_can_be_called_by_name_are_listed() -> None:
    backend = SharedBackend(
        level="shared", size=1, tasks=["tests.nodes.tasks", "tests.nodes.tasks.work"]
    )
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
            "node test.output returned what cannot be kept: no JSON: set is not a JSON type",
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


def test_a_clean_runner_is_used_again_without_traces(start: Start) -> None:
    first = start(tenant_id="acme")
    Driver(first).output("test.leave_traces")
    assert first.close(5) == ()
    assert not first.alive
    second = start(tenant_id="acme", execution_id="e2", epoch=5)
    assert second.pid == first.pid
    identity = Driver(second).output("test.identity")
    assert (identity["tenant_id"], identity["execution_id"], identity["epoch"]) == (
        "acme",
        "e2",
        5,
    )
    assert Driver(second).output("test.find_traces") == {
        "environ": None,
        "variable": "unset",
        "files": [],
        "in_home": True,
    }


def test_what_a_step_changed_in_the_process_is_set_back_for_the_next_run(start: Start) -> None:
    first = start(tenant_id="acme")
    before = Driver(first).output("restless.look")
    Driver(first).output("restless.leave")
    changed = Driver(first).output("restless.look")
    assert {name for name in before if before[name] == changed[name]} <= {"locale"}
    assert first.close(5) == ()
    second = start(tenant_id="acme", execution_id="e2")
    assert second.pid == first.pid
    driver = Driver(second)
    assert driver.output("restless.look") == before
    driver.output("test.speak")
    assert driver.frames[0] == Log(step="pay", level="info", message="printed")


def test_what_a_step_patched_is_seen_by_its_own_tenant_only(start: Start) -> None:
    first = start(tenant_id="acme")
    Driver(first).output("test.patch_module")
    assert first.close(5) == ()
    other = start(tenant_id="globex")
    assert other.pid != first.pid
    assert Driver(other).output("test.read_module") == "tmp"
    again = start(tenant_id="acme", execution_id="e2")
    assert again.pid == first.pid
    assert Driver(again).output("test.read_module") == "acme"


def test_a_full_pool_ends_the_longest_idle_runner_of_another_tenant(start: Start) -> None:
    tenants = ("acme", "globex", "hooli", "umbrella")
    idle = [start(tenant_id=tenant) for tenant in tenants[:2]]
    for runtime in idle:
        runtime.close(5)
    idle += [start(tenant_id=tenant) for tenant in tenants[2:]]
    for runtime in idle[2:]:
        runtime.close(5)
    assert not any(is_gone(runtime.pid) for runtime in idle)  # twice as many as may be at work
    initech = start(tenant_id="initech")
    assert initech.pid not in {runtime.pid for runtime in idle}
    assert [is_gone(runtime.pid) for runtime in idle] == [True, False, False, False]
    assert start(tenant_id="globex").pid == idle[1].pid


def test_the_pool_holds_its_size_with_many_tenants(backend: SharedBackend) -> None:
    def one_run(tenant_id: str) -> int:
        runtime = backend.start(
            Placement(
                tenant_id=tenant_id, tenant_number=number_of(tenant_id), execution_id="e1", epoch=1
            )
        )
        assert isinstance(runtime, SharedRuntime)
        runtime.open()
        assert Driver(runtime).output("test.identity")["tenant_id"] == tenant_id
        runtime.close(5)
        return runtime.pid

    with ThreadPoolExecutor(max_workers=2) as threads:
        pids = list(threads.map(one_run, [f"tenant{number % 6}" for number in range(18)]))
    assert len([pid for pid in set(pids) if not is_gone(pid)]) <= 4


def test_a_line_begun_in_a_teardown_does_not_reach_the_next_execution(start: Start) -> None:
    first = start(tenant_id="acme")
    Driver(first).output("test.print_on_close")
    first.close(5)
    second = start(tenant_id="acme", execution_id="e2")
    assert second.pid == first.pid
    driver = Driver(second)
    driver.output("test.speak")
    assert driver.frames[0] == Log(step="pay", level="info", message="printed")


def test_a_cancellation_ends_with_its_execution(start: Start) -> None:
    first = Driver(start())
    first.cancelled.set()
    assert first.run("test.identity").code is Code.CANCELLED
    first.cancelled.clear()
    first.runtime.close(5)
    assert not Driver(start()).output("test.identity")["cancelled"]


def test_the_old_handle_cannot_kill_the_runner_of_another(start: Start) -> None:
    first = start()
    first.close(5)
    second = start()
    assert second.pid == first.pid
    first.kill()
    assert first.close(5) == ()
    assert second.alive


def test_callbacks_run_at_close_in_reverse_order(driver: Driver, tmp_path: Path) -> None:
    file = tmp_path / "closed.txt"
    driver.output("test.on_close", {"file": str(file)})
    assert not file.exists()
    assert driver.runtime.close(5) == ()
    assert file.read_text().splitlines() == ["last registered", "first registered"]


def test_a_failing_callback_is_reported_and_the_runner_not_used_again(
    start: Start, tmp_path: Path
) -> None:
    runtime, file = start(), tmp_path / "closed.txt"
    Driver(runtime).output("test.on_close", {"file": str(file), "fail": True})
    (error,) = runtime.close(5)
    assert error.startswith("ZeroDivisionError in on_close callback")
    assert file.read_text().splitlines() == ["last registered", "first registered"]
    assert is_gone(runtime.pid)
    assert start().pid != runtime.pid


@pytest.mark.parametrize(
    ("uses", "error"),
    [
        ("test.leave_thread", "thread chatter was left running"),
        ("test.leave_process", "a process was left running"),
    ],
)
def test_a_runner_with_leftovers_is_ended(start: Start, uses: str, error: str) -> None:
    runtime = start()
    left = Driver(runtime).output(uses)
    assert runtime.close(5) == (error,)
    assert is_gone(runtime.pid)
    if left is not None:
        wait_until(lambda: is_gone(left))


def test_a_process_that_left_its_session_is_ended_with_the_context(
    start: Start, tmp_path: Path
) -> None:
    runtime, pid_file = start(), tmp_path / "pid"
    Driver(runtime).output("test.daemonize", {"pid_file": str(pid_file)})
    assert not is_gone(int(pid_file.read_text()))
    assert runtime.close(5) == ("a process was left running",)
    assert is_gone(int(pid_file.read_text()))
    assert is_gone(runtime.pid)


def test_kill_ends_a_process_that_left_its_session(start: Start, tmp_path: Path) -> None:
    runtime, pid_file = start(), tmp_path / "pid"
    Driver(runtime).output("test.daemonize", {"pid_file": str(pid_file)})
    runtime.kill()
    wait_until(lambda: is_gone(int(pid_file.read_text())))


def test_a_teardown_that_hangs_is_cut(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("test.hang_on_close")
    (error,) = runtime.close(0.3)
    assert "did not answer within 0.3 s" in error
    assert is_gone(runtime.pid)


def test_the_pool_has_a_size_and_a_closed_runtime_frees_its_place(
    backend: SharedBackend, start: Start
) -> None:
    first, second = start(), start()
    assert first.pid != second.pid
    with pytest.raises(PoolExhaustedError, match="all 2 runtimes of level shared are in use"):
        backend.start(PLACEMENT)
    second.kill()
    assert not second.alive
    second.close(5)
    assert start().alive


def test_an_idle_runner_that_died_is_replaced(start: Start) -> None:
    first = start()
    first.close(5)
    os.kill(first.pid, signal.SIGKILL)
    # All of its threads must be gone: until then the dead leader still has a stream.
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    wait_until(lambda: os.waitid(os.P_PID, first.pid, flags))
    second = start()
    assert second.pid != first.pid
    assert Driver(second).output("test.add", {"a": 1}) == 2


def test_a_runtime_that_was_never_opened_goes_back(backend: SharedBackend, start: Start) -> None:
    unopened = backend.start(PLACEMENT)
    assert unopened.close(5) == ()
    assert Driver(start()).output("test.add", {"a": 1}) == 2


def test_stop_ends_idle_and_busy_runners(backend: SharedBackend, start: Start) -> None:
    busy, idle = start(), start()
    idle.close(5)
    backend.stop()
    assert is_gone(busy.pid)
    assert is_gone(idle.pid)
    assert not busy.alive
    assert Driver(busy).run("test.identity").code is Code.UNKNOWN_ERROR


def test_a_package_that_cannot_be_imported_is_named() -> None:
    backend = SharedBackend(level="shared", size=1, packages=["tests.nowhere"])
    reason = "package tests.nowhere cannot be imported: ModuleNotFoundError"
    with pytest.raises(RuntimeStartError, match=reason):
        backend.describe()
    runtime = backend.start(PLACEMENT)
    with pytest.raises(RuntimeStartError, match=reason):
        runtime.open()
    assert runtime.close(5) == ()


def test_packages_are_found_on_the_paths_given(tmp_path: Path) -> None:
    source = (
        "from isolane import node\n@node('own.one')\ndef one(ctx): return 1\n__version__ = '2.5'\n"
    )
    (tmp_path / "own_nodes.py").write_text(source)
    backend = SharedBackend(level="shared", size=1, packages=["own_nodes"], paths=[tmp_path])
    catalogue = backend.describe()
    assert "own.one" in {node.name for node in catalogue.nodes}
    assert catalogue.packages["own_nodes"] == "2.5"
