"""resources.runtimes.supervision: deadlines, cancellation, deaths and lies."""

import threading
import time

import pytest

from isolane.limits import RunLimits
from isolane.protocol import COSTS_MAX, HEADER, VERSION, Cost, Log, Progress, encode
from isolane.results import Code, StepResult
from resources.runtimes.shared import SharedBackend
from resources.runtimes.supervision import DROPPED, LOG_LINES, OUTPUT_KB
from tests.integration.resources.runtimes.conftest import (
    Driver,
    Start,
    a_run,
)
from tests.placements import ACME, a_placement


def test_the_deadline_holds_while_the_step_floods(driver: Driver) -> None:
    began = time.monotonic()
    assert driver.run("test.shout", seconds=0.5).code is Code.TIMEOUT
    assert time.monotonic() - began < 3
    assert driver.frames


def test_a_flood_is_cut_per_attempt(driver: Driver) -> None:
    def said() -> list[Log]:
        return [frame for frame in driver.frames if isinstance(frame, Log)]

    driver.output("test.say", {"lines": LOG_LINES + 500})
    assert [log.message for log in said()] == ["x"] * LOG_LINES + [DROPPED]
    driver.frames.clear()
    driver.output("test.say", {"lines": 3})
    assert [log.message for log in said()] == ["x"] * 3
    driver.frames.clear()
    assert driver.run("test.shout", seconds=1).code is Code.TIMEOUT
    assert said()[-1].message == DROPPED
    assert sum(len(log.message) for log in said()[:-1]) <= OUTPUT_KB * 1024


def test_a_run_with_a_limit_of_output_is_cut_there(backend: SharedBackend) -> None:
    runtime = backend.start(a_placement(), identity=ACME, limits=RunLimits(output_kb=1))
    try:
        runtime.open()
        limited = Driver(runtime)
        assert limited.run("test.shout", seconds=0.5).code is Code.TIMEOUT
    finally:
        runtime.close(5)
    said = [frame.message for frame in limited.frames if isinstance(frame, Log)]
    assert said == ["x" * 1000, DROPPED]


@pytest.mark.parametrize("succeed", [True, False])
def test_a_step_may_end_by_itself_when_cancelled(driver: Driver, succeed: bool) -> None:
    cancelled_at: list[float] = []

    def on_frame(frame: Log | Progress | Cost) -> None:
        cancelled_at.append(time.monotonic())
        driver.cancelled.set()

    result = driver.runtime.run(
        a_run("test.until_cancelled", {"succeed": succeed}),
        deadline=time.monotonic() + 30,
        cancelled=driver.cancelled,
        on_frame=on_frame,
    )
    assert time.monotonic() - cancelled_at[0] < 0.9  # before the grace time is over
    assert driver.runtime.alive
    if succeed:
        assert (result.status, result.output) == ("succeeded", "finished")
    else:
        assert (result.code, result.message) == (Code.CANCELLED, "cancelled")


def test_a_cancelled_step_does_not_begin(driver: Driver) -> None:
    driver.cancelled.set()
    result = driver.run("test.speak")
    assert (result.code, result.message) == (Code.CANCELLED, "cancelled before it began")
    assert driver.frames == []


def test_a_death_is_seen_though_an_orphan_keeps_the_stream_open(driver: Driver) -> None:
    began = time.monotonic()
    result = driver.run("test.exit_behind_orphan")
    assert result.message == "the runtime died (signal SIGKILL)"
    assert time.monotonic() - began < 3


def test_kill_from_another_thread_ends_the_step(start: Start) -> None:
    runtime = start()
    killer = threading.Thread(target=runtime.kill)
    result = runtime.run(
        a_run("test.until_cancelled", {"succeed": True}),
        deadline=time.monotonic() + 30,
        cancelled=threading.Event(),
        on_frame=lambda frame: killer.start(),
    )
    killer.join()
    assert result.message == "the runtime died (signal SIGKILL)"


FORGED = {
    "garbage": b"\xff" * 20,
    "oversized": HEADER.pack(VERSION, 69, 2**32 - 1),
    "another step": encode(StepResult.succeeded(step="other", attempt=0, output=1)),
    "another attempt": encode(StepResult.succeeded(step="pay", attempt=1, output=1)),
    "unexpected": encode(a_run("test.add")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_runtime_that_lies_is_killed(driver: Driver, name: str) -> None:
    result = driver.run("test.write_to_stream", {"data": FORGED[name].hex()})
    assert result.code is Code.POLICY_VIOLATION
    assert result.message.startswith("the runtime broke the protocol: ")
    assert not driver.runtime.alive


def test_lines_of_another_step_are_dropped(driver: Driver) -> None:
    forged = encode(Log(step="other", level="info", message="x"))
    assert (
        driver.run("test.write_to_stream", {"data": forged.hex()}, seconds=1).code is Code.TIMEOUT
    )
    assert driver.frames == []


def test_costs_are_relayed(driver: Driver) -> None:
    driver.output("test.cost", {"times": 2})
    costs = [frame for frame in driver.frames if isinstance(frame, Cost)]
    assert costs == [Cost(step="pay", kind="tokens", amount=812.0)] * 2


def test_a_step_may_report_so_many_costs_and_a_runtime_no_more(driver: Driver) -> None:
    result = driver.run("test.cost", {"times": COSTS_MAX + 1})
    assert (result.code, result.cause) == (Code.UNKNOWN_ERROR, "ValueError")
    assert len(driver.frames) == COSTS_MAX
    assert driver.runtime.alive
    result = driver.run("restless.overcharge")
    assert result.code is Code.POLICY_VIOLATION
    assert result.message.endswith("Cost: more than 1000 reports of one attempt")
    assert not driver.runtime.alive


@pytest.mark.parametrize("step", ["other", "pay"])  # of its own step, but without its nonce
def test_costs_of_another_step_or_attempt_are_dropped(driver: Driver, step: str) -> None:
    forged = encode(Cost(step=step, kind="tokens", amount=1.0)).hex()
    assert driver.run("test.write_to_stream", {"data": forged}, seconds=1).code is Code.TIMEOUT
    assert driver.frames == []


# --- a thread that an earlier attempt has left
def test_it_does_not_speak_for_the_next_attempt(driver: Driver) -> None:
    driver.output("restless.leave_forger", {"with_result": False})
    assert driver.output("restless.release_forger") == "own"
    assert driver.frames == []


def test_it_cannot_forge_the_result_of_the_next_attempt(driver: Driver) -> None:
    """Step and number are the same, as after a loss; the runtime, which cannot be trusted any more, is killed."""
    driver.output("restless.leave_forger", {"with_result": True})
    result = driver.run("restless.release_forger")
    assert (result.code, result.output) == (Code.POLICY_VIOLATION, None)
    assert result.message.endswith("StepResult: for another step or attempt")
    assert not driver.runtime.alive


def test_handles_that_cannot_be_are_not_believed(driver: Driver) -> None:
    result = driver.run("restless.forge_reuse")
    assert result.code is Code.POLICY_VIOLATION
    assert "StepResult.reused: resource_id 'no id' does not match" in result.message
    assert not driver.runtime.alive


# --- codes that are not a node's to use
RESERVED = (Code.CANCELLED, Code.WORKER_LOST, Code.OUTCOME_UNKNOWN, Code.CATALOGUE_MISSING)


@pytest.mark.parametrize("code", RESERVED)
def test_a_node_that_uses_a_code_of_the_platform_has_failed_with_an_unknown_error(
    driver: Driver, code: Code
) -> None:
    result = driver.run("restless.fail", {"code": code.value})
    said = f"the node failed with {code}, which only the platform may report: as it says"
    assert (result.code, result.message) == (Code.UNKNOWN_ERROR, said)
    assert driver.runtime.alive


@pytest.mark.parametrize("code", sorted(set(Code) - set(RESERVED)))
def test_all_other_codes_are_its_own_to_use(driver: Driver, code: Code) -> None:
    result = driver.run("restless.fail", {"code": code.value})
    assert (result.code, result.message) == (code, "as it says")


def test_half_a_frame_cannot_hold_the_worker(driver: Driver) -> None:
    half = encode(Log(step="pay", level="info", message="x" * 1000))[:50]
    assert driver.run("test.write_to_stream", {"data": half.hex()}, seconds=1).code is Code.TIMEOUT


def test_parameters_that_cannot_be_sent_are_refused(driver: Driver) -> None:
    result = driver.run("data.map", {"values": {"x": "\x00"}})
    assert result.code is Code.POLICY_VIOLATION
    assert result.message.startswith("the parameters cannot be sent: ")
    assert driver.output("test.add", {"a": 1}) == 2


def test_large_parameters_and_outputs_pass(driver: Driver) -> None:
    values = {"x": "y" * 1_000_000}
    assert driver.output("data.map", {"values": values}) == values


def test_an_error_of_the_callback_kills_the_runtime_and_is_raised(start: Start) -> None:
    runtime = start()

    def fail(frame: Log | Progress | Cost) -> None:
        raise TimeoutError("the database is away")

    with pytest.raises(TimeoutError, match="the database is away"):
        runtime.run(
            a_run("test.shout"),
            deadline=time.monotonic() + 30,
            cancelled=threading.Event(),
            on_frame=fail,
        )
    assert not runtime.alive
