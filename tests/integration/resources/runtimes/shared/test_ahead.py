"""resources.runtimes.shared: frames whose answers are taken later, so that the worker need not wait for them."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isolane.protocol import Ready, encode
from isolane.results import Code
from resources.runtimes import supervision
from resources.runtimes.shared import SharedBackend, SharedRuntime
from resources.runtimes.zygote import LatePackage
from tests.integration.resources.runtimes.conftest import Driver, Start, is_gone, wait_until
from tests.placements import run_id


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """It does nothing meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def start_warm(start: Start) -> Callable[[], SharedRuntime]:
    """Open a context in a runner that has served another one, and is stopped before it can answer."""

    def start_one() -> SharedRuntime:
        first = start(execution_id="e0")
        first.close(5)
        with stopped(first.pid):
            # Returns, though nobody has answered yet.
            second = start(execution_id="e1")
        assert second.pid == first.pid
        return second

    return start_one


def test_a_warm_runner_is_not_waited_for(start_warm: Callable[[], SharedRuntime]) -> None:
    driver = Driver(start_warm())
    assert driver.output("test.identity")["execution_id"] == str(run_id("e1"))
    assert driver.output("test.add", {"a": 1}) == 2
    assert driver.runtime.close(5) == ()


def test_nor_is_it_when_its_context_closes_without_a_step(
    start_warm: Callable[[], SharedRuntime], start: Start
) -> None:
    runtime = start_warm()
    assert runtime.close(5) == ()
    assert start(execution_id="e2").pid == runtime.pid


def test_one_that_dies_before_its_context_is_open_fails_the_step_for_want_of_it(
    start: Start,
) -> None:
    first = start(execution_id="e0")
    first.close(5)
    os.kill(first.pid, signal.SIGSTOP)
    driver = Driver(start(execution_id="e1"))
    os.kill(first.pid, signal.SIGKILL)
    result = driver.run("test.add", {"a": 1})
    assert result.code is Code.RESOURCE_ERROR
    assert "the runtime died before its context was open (signal SIGKILL)" in result.message


def test_one_that_hangs_before_its_context_is_open_has_not_begun_the_step(start: Start) -> None:
    first = start(execution_id="e0")
    first.close(5)
    os.kill(first.pid, signal.SIGSTOP)
    driver = Driver(start(execution_id="e1"))
    result = driver.run("test.add", {"a": 1}, seconds=0.3)
    assert result.code is Code.RESOURCE_ERROR
    assert result.message == "the runtime did not open its context in time"
    assert is_gone(first.pid)


def test_and_has_no_longer_than_any_other(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_OPEN_TIMEOUT", 0.3)
    first = start(execution_id="e0")
    first.close(5)
    os.kill(first.pid, signal.SIGSTOP)
    result = Driver(start(execution_id="e1")).run("test.add", {"a": 1}, seconds=3600)
    assert result.code is Code.RESOURCE_ERROR


def test_one_that_imports_a_package_by_itself_is_waited_for(
    backend: SharedBackend, start: Start
) -> None:
    backend._zygote._late = (
        LatePackage(name="package threads", left="starts 1 thread", seconds=0.1),
    )
    first = start(execution_id="e1")
    assert not first._child.is_pending


class CancelledMeanwhile(threading.Event):
    """Set when the step was sent to a runner that is stopped, which goes on when it was told."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid
        self._looks = 0

    def is_set(self) -> bool:
        self._looks += 1
        if self._looks == 3:
            os.kill(self._pid, signal.SIGCONT)
        return self._looks > 1


def test_a_cancellation_reaches_a_step_whose_context_was_not_open_yet(start: Start) -> None:
    first = start(execution_id="e0")
    first.close(5)
    os.kill(first.pid, signal.SIGSTOP)
    driver = Driver(start(execution_id="e1"), cancelled=CancelledMeanwhile(first.pid))
    assert driver.output("test.until_cancelled", {"succeed": True}) == "finished"
    assert driver.runtime.close(5) == ()
    # It was not meant for the next run.
    driver = Driver(start(execution_id="e2"))
    assert driver.runtime.pid == first.pid  # type: ignore[attr-defined]
    assert driver.run("test.until_cancelled", {"succeed": True}, seconds=0.5).code is Code.TIMEOUT


def test_a_teardown_begins_before_it_is_waited_for(start: Start, tmp_path: Path) -> None:
    runtime, file = start(), tmp_path / "closed"
    Driver(runtime).output("test.on_close", {"file": str(file)})
    runtime.begin_close()
    runtime.begin_close()
    wait_until(lambda: file.exists() and "first registered" in file.read_text())
    assert runtime.close(5) == ()
    assert file.read_text().splitlines() == ["last registered", "first registered"]
    assert start(execution_id="e2").pid == runtime.pid


def test_what_goes_wrong_in_it_is_told_by_the_close(start: Start, tmp_path: Path) -> None:
    runtime = start()
    Driver(runtime).output("test.on_close", {"file": str(tmp_path / "closed"), "fail": True})
    runtime.begin_close()
    (error,) = runtime.close(5)
    assert error.startswith("ZeroDivisionError in on_close callback ")
    assert is_gone(runtime.pid)


def test_a_runner_that_died_is_not_told_to_close(start: Start) -> None:
    runtime = start()
    runtime.kill()
    runtime.begin_close()
    assert runtime.close(5) == ()


def test_one_that_hangs_then_is_cut_by_the_close(start: Start) -> None:
    runtime = start()
    os.kill(runtime.pid, signal.SIGSTOP)
    runtime.begin_close()
    (error,) = runtime.close(0.3)
    assert "no Closed came, it did not answer within 0.3 s" in error
    assert is_gone(runtime.pid)


def test_an_answer_that_nobody_asked_for_is_a_lie(start: Start) -> None:
    driver = Driver(start())
    result = driver.run("test.write_to_stream", {"data": encode(Ready()).hex()})
    assert result.code is Code.POLICY_VIOLATION
    assert result.message.endswith("it sent Ready without being asked")
