"""resources.runtimes.shared: runners that are used again, the pool around them, and how they end."""

import errno
import os
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isolane.protocol import Grant, Log, Resource
from isolane.results import Code
from resources.runtimes import idle, pool
from resources.runtimes.base import RunIdentity, RuntimeStartError
from resources.runtimes.shared import SharedBackend, SharedRuntime
from resources.runtimes.shared_runner import end_descendants_of
from tests.integration.resources.runtimes.conftest import (
    Driver,
    Start,
    is_gone,
    number_of,
    wait_until,
)
from tests.placements import ACME, a_placement, run_id

PLACEMENT = a_placement()
CHAT = Grant(
    name="chat",
    type="model",
    definition="d",
    scope="execution",
    config={"provider": "echo", "model": "m"},
    secrets={},
)


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
        str(run_id("e2")),
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


@pytest.mark.parametrize(
    ("uses", "events", "errors"),
    [
        ("restless.use", ["allocated", "disposed"], ()),
        ("restless.hide_handle", ["allocated"], ("handles that were not closed: 1",)),
    ],
)
def test_a_runner_is_used_again_only_if_it_said_that_all_handles_are_closed(
    backend: SharedBackend, start: Start, uses: str, events: list[str], errors: tuple[str, ...]
) -> None:
    heard: list[Resource] = []
    first = backend.start(PLACEMENT, identity=ACME, grants=[CHAT], on_resource=heard.append)
    assert isinstance(first, SharedRuntime)
    first.open()
    Driver(first).output(uses)
    assert first.close(5) == errors
    assert [frame.event for frame in heard] == events
    second = start(tenant_id="acme", execution_id="e2")
    assert (second.pid == first.pid) == (not errors)
    assert is_gone(first.pid) == bool(errors)


def test_a_full_pool_ends_the_longest_idle_runners_of_other_tenants(
    backend: SharedBackend, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "RUNNER_MB", 100.0)
    monkeypatch.setattr(idle, "_AT_ONCE", 2)
    backend._pool.idle = idle.IdleRunners(most_mb=450)
    pids = [one_run(start, tenant_id=tenant) for tenant in ("acme", "globex", "hooli", "umbrella")]
    assert not any(is_gone(pid) for pid in pids)  # twice as many as may be at work
    pids.append(one_run(start, tenant_id="initech"))
    assert [is_gone(pid) for pid in pids] == [True, True, False, False, False]
    assert one_run(start, tenant_id="umbrella") == pids[3]


def test_idle_runners_that_nobody_uses_are_swept(
    backend: SharedBackend, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = [one_run(start, tenant_id=tenant) for tenant in ("acme", "globex")]
    backend.sweep()
    assert not any(is_gone(pid) for pid in pids)
    monkeypatch.setattr(idle, "UNUSED_SECONDS", 0.0)
    backend.sweep()
    assert all(is_gone(pid) for pid in pids)


def test_runners_that_are_ended_together_leave_no_process(start: Start, tmp_path: Path) -> None:
    files = [tmp_path / tenant for tenant in ("acme", "globex")]
    runtimes = [start(tenant_id=file.name) for file in files]
    for runtime, file in zip(runtimes, files, strict=True):
        Driver(runtime).output("test.daemonize", {"pid_file": str(file)})
    left = [int(file.read_text()) for file in files]
    children = [runtime._child for runtime in runtimes]
    end_descendants_of(children)
    assert all(is_gone(pid) for pid in left)
    assert not any(is_gone(child.pid) for child in children)
    for child in children:
        child.dispose()
    assert all(is_gone(child.pid) for child in children)


def test_the_pool_holds_its_size_with_many_tenants(
    backend: SharedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "RUNNER_MB", 100.0)
    backend._pool.idle = idle.IdleRunners(most_mb=450)

    def one_run(tenant_id: str) -> int:
        runtime = backend.start(
            a_placement(tenant_id=number_of(tenant_id)), identity=RunIdentity(tenant=tenant_id)
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


def test_an_idle_runner_that_died_is_replaced(start: Start) -> None:
    first = start()
    first.close(5)
    os.kill(first.pid, signal.SIGKILL)
    wait_until(first._child.ended)
    second = start()
    assert second.pid != first.pid
    assert Driver(second).output("test.add", {"a": 1}) == 2


def test_stop_ends_idle_and_busy_runners(backend: SharedBackend, start: Start) -> None:
    busy, idle = start(), start()
    idle.close(5)
    Driver(busy).output("test.identity")
    backend.stop()
    assert is_gone(busy.pid)
    assert is_gone(idle.pid)
    assert not busy.alive
    assert Driver(busy).run("test.identity").code is Code.UNKNOWN_ERROR


def test_a_runner_is_replaced_after_so_many_runs(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "RUNS_MAX", 2)
    first, second, third = (one_run(start) for _ in range(3))
    assert (second == first, third == first) == (True, False)
    assert is_gone(first)


def test_and_when_its_ram_has_grown(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GROWTH_MAX_MB", 64)
    pids = [one_run(start, keeps_mb=40) for _ in range(3)]
    assert (pids[1] == pids[0], pids[2] == pids[0]) == (True, False)
    assert is_gone(pids[0])
    assert one_run(start, tenant_id="globex") not in pids


def one_run(start: Start, *, tenant_id: str = "acme", keeps_mb: int = 0) -> int:
    """Run one step that keeps so much, and return the runner that it ran in."""
    runtime = start(tenant_id=tenant_id)
    Driver(runtime).output("restless.keep", {"megabytes": keeps_mb})
    assert runtime.close(5) == ()
    return runtime.pid


def test_a_start_that_the_machine_refuses_is_said_to_be_one(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkdtemp", fail)
        with pytest.raises(RuntimeStartError, match=r"cannot be started: .*No space left"):
            start()
    assert Driver(start()).output("test.add", {"a": 1}) == 2
