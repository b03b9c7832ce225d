"""The end of a step, a context and a runtime at every level: nothing that it started goes on."""

import time
from collections.abc import Callable

import pytest

from isolane.results import Code
from resources.runtimes import supervision
from resources.runtimes.base import PoolExhaustedError, Runtime, RuntimeBackend
from tests.integration.resources.runtimes.conftest import Driver, sleepers, wait_until
from tests.integration.resources.runtimes.contract.conftest import Build, Start
from tests.placements import ACME, a_placement

Times = tuple[str, str]
GRACE = 0.2  # seconds, for the tests' sake


def starting(driver: Driver, times: Times) -> dict[str, str]:
    """Have the processes looked for from outside as soon as they run: else their absence would say nothing."""

    def look() -> None:
        assert len(sleepers(*times)) == 2

    then = driver.on_progress

    def look_then_go_on() -> None:
        look()
        then()

    driver.on_progress = look_then_go_on
    return {"child": times[0], "daemon": times[1]}


def at_its_deadline(driver: Driver, times: Times) -> None:
    """The step has not ended in time."""
    began = time.monotonic()
    parameters = starting(driver, times) | {"seconds": 60}
    result = driver.run("contract.start_processes", parameters, seconds=0.5)
    assert (result.code, result.message) == (Code.TIMEOUT, "the step was ended at its deadline")
    assert 0.5 <= time.monotonic() - began < 3


def when_cancelled(driver: Driver, times: Times) -> None:
    """The step does not look whether it is cancelled."""
    driver.on_progress = driver.cancelled.set
    parameters = starting(driver, times) | {"seconds": 60}
    result = driver.run("contract.start_processes", parameters)
    assert (result.code, result.message) == (Code.CANCELLED, "cancelled")


def when_it_exits(driver: Driver, times: Times) -> None:
    """The step ends its process."""
    driver.output("contract.start_processes", starting(driver, times))
    result = driver.run("test.exit", {"code": 7})
    assert (result.code, result.message) == (Code.UNKNOWN_ERROR, "the runtime died (exit code 7)")


def when_it_kills_itself(driver: Driver, times: Times) -> None:
    """The step kills its process, while another one keeps the stream open."""
    driver.output("contract.start_processes", starting(driver, times))
    result = driver.run("test.exit_behind_orphan")
    died = "the runtime died (signal SIGKILL)"
    assert (result.code, result.message) == (Code.UNKNOWN_ERROR, died)


def when_it_is_killed(driver: Driver, times: Times) -> None:
    """The worker kills the runtime between two steps."""
    driver.output("contract.start_processes", starting(driver, times))
    driver.runtime.kill()
    driver.runtime.kill()


def when_it_is_closed(driver: Driver, times: Times) -> None:
    """The run is over."""
    driver.output("contract.start_processes", starting(driver, times))
    driver.runtime.close(5)


@pytest.mark.parametrize(
    "ending",
    [
        at_its_deadline, when_cancelled, when_it_exits, when_it_kills_itself, when_it_is_killed, when_it_is_closed,
    ],
)  # fmt: skip
def test_all_processes_that_a_step_started_end_with_it(
    driver: Driver,
    times: Times,
    ending: Callable[[Driver, Times], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervision, "_GRACE", GRACE)
    ending(driver, times)
    assert not driver.runtime.alive
    wait_until(lambda: not sleepers(*times))


def test_a_cancelled_step_has_a_second_to_end_by_itself() -> None:
    assert supervision._GRACE == 1.0


def test_a_dead_runtime_fails_every_further_step_and_closes(start: Start) -> None:
    runtime = start()
    Driver(runtime).run("test.exit", {"code": 7})
    assert not runtime.alive
    assert Driver(runtime).run("test.add", {"a": 1}).code is Code.UNKNOWN_ERROR
    assert runtime.close(5) == ()
    assert runtime.close(5) == ()


# --- the teardown
def test_callbacks_run_in_reverse_order_and_their_errors_are_told(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("contract.fail_on_close")
    errors = runtime.close(5)
    name = "in on_close callback fail_on_close.<locals>"
    assert errors == (f"KeyError {name}.last", f"LookupError {name}.first")
    assert not runtime.alive


def test_a_teardown_that_hangs_is_cut(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("test.hang_on_close")
    began = time.monotonic()
    (error,) = runtime.close(0.3)
    assert "did not answer within 0.3 s" in error
    assert time.monotonic() - began < 3
    assert not runtime.alive


def test_a_teardown_in_which_it_dies_is_told(start: Start) -> None:
    runtime = start()
    Driver(runtime).output("test.die_on_close", {"number": 35})
    (error,) = runtime.close(5)
    assert error == "no Closed came, it died: signal 35"


def test_a_runtime_that_was_never_opened_can_be_closed(backend: RuntimeBackend) -> None:
    unopened = backend.start(a_placement(), identity=ACME)
    assert unopened.close(5) == ()


# --- the worker
def test_without_a_keepalive_it_ends_and_counts_as_lost(
    build: Build, start: Start, times: Times
) -> None:
    backend = build()
    backend.keepalive(until=time.monotonic() + 60)
    driver = Driver(start(on=backend))
    other = start(on=backend, tenant_id="globex")

    driver.on_progress = lambda: backend.keepalive(until=time.monotonic() + 0.3)
    result = driver.run("contract.start_processes", starting(driver, times) | {"seconds": 60})
    assert result.code is Code.UNKNOWN_ERROR
    assert driver.runtime.lost
    wait_until(lambda: not sleepers(*times))
    wait_until(lambda: not other.alive)
    other.close(5)
    backend.keepalive(until=time.monotonic() + 60)
    assert other.lost
    assert Driver(start(on=backend)).output("test.add", {"a": 1}) == 2


def test_one_that_dies_by_itself_is_not_lost(driver: Driver) -> None:
    driver.run("test.exit", {"code": 7})
    assert not driver.runtime.lost


def test_one_that_is_ended_at_its_deadline_is_not_lost(driver: Driver) -> None:
    assert driver.run("test.sleep", {"seconds": 60.0}, seconds=0.2).code is Code.TIMEOUT
    assert not driver.runtime.lost


def test_there_are_so_many_runtimes_and_a_closed_one_frees_its_place(
    build: Build, start: Start, level: str
) -> None:
    backend = build(size=2)
    first, second = start(on=backend), start(on=backend)
    with pytest.raises(PoolExhaustedError, match=f"all 2 runtimes of level {level} are in use"):
        backend.start(a_placement(tenant_id=2), identity=ACME)
    for runtime in (first, second):
        end(runtime)
        assert start(on=backend).alive


def end(runtime: Runtime) -> None:
    runtime.kill()
    assert not runtime.alive
    runtime.close(5)


def test_a_stopped_backend_has_ended_all_of_its_runtimes_and_no_other(
    build: Build, start: Start
) -> None:
    backend = build()
    busy, other = start(on=backend), start()
    Driver(busy).output("test.identity")
    backend.stop()
    backend.stop()
    assert not busy.alive
    assert Driver(other).output("test.add", {"a": 1}) == 2
    assert Driver(busy).run("test.identity").code is Code.UNKNOWN_ERROR
