"""The worker of a process: found by Celery's signals and tasks, drained by a number, ended in any state."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from executions.worker import lifecycle, worker
from executions.worker.boot import WorkerBoot
from executions.worker.loops.lease import EXIT_FENCED
from executions.worker.worker import WorkerProcess, current, is_worker, set_current
from isolane.protocol import NodeCatalogue
from resources.runtimes.base import Availability, RuntimeBackend, RuntimeStartError
from resources.runtimes.stub import StubBackend, succeeds


@pytest.fixture
def stopped() -> list[str]:
    """The backends that were stopped."""
    return []


@pytest.fixture
def boot(stopped: list[str]) -> WorkerBoot:
    backends: Mapping[str, RuntimeBackend] = {
        "shared": SimpleNamespace(stop=lambda: stopped.append("shared"))  # type: ignore[dict-item]  # all it is asked
    }
    return WorkerBoot(node_name="w@here", capacity=1, backends=backends)


@pytest.fixture
def process(boot: WorkerBoot) -> Iterator[WorkerProcess]:
    found = WorkerProcess(boot)
    set_current(found)
    yield found
    set_current(None)


def test_what_was_never_registered_asks_no_server(
    process: WorkerProcess, stopped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(worker, "platform_scope", lambda: asked.append(None))

    process.shutdown()

    assert (stopped, asked) == (["shared"], [])


class Refusing(StubBackend):
    """A level that this machine cannot give."""

    def availability(self) -> Availability:
        """Refuse."""
        return Availability(ok=False, reason="no namespaces (allow them)")

    def describe(self) -> NodeCatalogue:
        """Fail: nobody asks a level that is not offered."""
        raise AssertionError(self.level)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows of workers that were registered, without a database and loops."""
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(worker, "platform_scope", contextlib.nullcontext)
    monkeypatch.setattr(worker, "store_catalogue", lambda found: found)
    monkeypatch.setattr(worker, "register", lambda **row: written.append(row))
    monkeypatch.setattr(WorkerProcess, "_start_loops", lambda self: None)
    return written


def test_a_level_that_the_machine_refuses_is_logged_and_not_offered(
    rows: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    shared = StubBackend(level="shared", script={"a": succeeds(1)})
    backends = {"process": Refusing(level="process", script={}), "shared": shared}
    WorkerProcess(WorkerBoot(node_name="w@here", capacity=1, backends=backends)).register()
    (row,) = rows
    assert (row["levels"], row["catalogue"]) == (["shared"], shared.describe())
    (line,) = [line for line in caplog.records if line.levelno == logging.WARNING]
    assert (line.__dict__["event"], line.__dict__["level"]) == ("LEVEL_UNAVAILABLE", "process")
    assert line.getMessage() == "level process is not offered: no namespaces (allow them)"


def test_a_worker_without_any_level_is_not_registered(rows: list[dict[str, Any]]) -> None:
    backends = {"process": Refusing(level="process", script={})}
    process = WorkerProcess(WorkerBoot(node_name="w@here", capacity=1, backends=backends))
    with pytest.raises(RuntimeStartError, match=r"process: no namespaces \(allow them\)"):
        process.register()
    assert rows == []


def test_it_is_found_by_signals_and_tasks(process: WorkerProcess) -> None:
    assert is_worker()
    assert current() is process


def test_another_process_is_not_a_worker() -> None:
    assert not is_worker()
    with pytest.raises(RuntimeError, match="this process is not a worker"):
        current()
    # Celery may send these to a worker that could not even be built.
    lifecycle._drain()
    lifecycle._shut_down()


def test_a_signal_raises_a_number_and_nothing_else(
    process: WorkerProcess, boot: WorkerBoot
) -> None:
    lifecycle._drain()
    assert process._drain.requests == 1
    assert not process._drain.at_once
    assert not boot.draining.is_set()
    lifecycle._drain()
    assert process._drain.at_once


def test_the_drain_acts_on_the_number(process: WorkerProcess, boot: WorkerBoot) -> None:
    process.watch_for_drain()
    process.drain()
    process._drain.join(timeout=20)
    assert boot.draining.is_set()


@pytest.mark.parametrize("draining", [True, False])
def test_an_unreachable_worker_leaves_unless_it_ends_anyway(
    process: WorkerProcess,
    boot: WorkerBoot,
    stopped: list[str],
    monkeypatch: pytest.MonkeyPatch,
    draining: bool,
) -> None:
    left, codes = threading.Event(), []

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    monkeypatch.setattr("executions.worker.worker.os._exit", leave)
    process.watch_for_drain()
    if draining:
        boot.draining.set()
    process._on_unreachable()
    assert left.wait(0.5 if draining else 20) is not draining
    assert codes == ([] if draining else [EXIT_FENCED])
    assert stopped == ([] if draining else ["shared"])
    process.drain()  # ends the thread of the drain
    process._drain.join(timeout=20)
