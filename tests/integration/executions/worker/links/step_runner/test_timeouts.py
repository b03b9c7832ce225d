"""The time of a run, counted while it holds a slot: when it is used up the run ends, whatever its failure modes."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from executions.placement.admission import admit
from executions.placement.models import Ticket
from executions.semantics.attempt import OVERDUE
from executions.semantics.attempt_output import AttemptOutput
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.links.attempt_log import AttemptLog
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.loops.lease import LeaseLoop
from isolane.protocol import Run
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import StubRuntime, fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    place,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.worker.driving import (
    doing,
    drive,
    epochs_closed,
    run_link,
    runs_of,
    script,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

MODES: list[dict[str, Any]] = [
    {"on_failure": "abort"},
    {"on_failure": "continue"},
    {"on_failure": "retry"},
    {"on_failure": "recover", "recover": {"uses": "rescue"}},
]
SHORT = 0.05  # seconds


def leave(tenant: TenantRef, placement: Placement, seconds: float) -> None:
    """The run may hold its slot for so long."""
    with tenant_scope(tenant):
        Ticket.objects.filter(execution_id=placement.execution_id).update(
            deadline=Now() + timedelta(seconds=seconds)
        )


def assert_timed_out(tenant: TenantRef, boot: WorkerBoot, placement: Placement) -> None:
    run = run_of(tenant, placement.execution_id)
    assert (run.state, run.code) == ("timed_out", "TIMEOUT")
    assert run.message == OVERDUE
    assert ticket_of(placement.execution_id) is None
    assert boot.contexts.get(placement.key) is None


def overstay(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """Time out at the deadline, as a runtime does."""
    cancelled.wait(2 * SHORT)
    return fails(Code.TIMEOUT, "too late")(run, cancelled, on_frame)


@pytest.mark.parametrize("begun", [True, False])
def test_between_links_the_loop_ends_it(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, begun: bool
) -> None:
    placement = start(acme, boot, {}, {})
    if begun:
        run_link(links, placement, "s1")
    leave(acme, placement, -1)
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert_timed_out(acme, boot, placement)
    # The second was claimed with the first one's checkpoint.
    steps = ("succeeded", "failed") if begun else ("skipped", "skipped")
    assert tuple(steps_of(acme, placement.execution_id).values()) == steps
    assert len(epochs_closed(boot, placement)) == begun


@pytest.mark.parametrize("mode", MODES)
def test_within_a_step_it_ends_whatever_the_failure_mode(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: dict[str, Any]
) -> None:
    script(boot, flaky=overstay)
    placement = start(acme, boot, {"uses": "flaky", **mode}, {})
    leave(acme, placement, SHORT)
    drive(acme, links, placement)
    assert_timed_out(acme, boot, placement)
    assert steps_of(acme, placement.execution_id) == {"s1": "failed", "s2": "skipped"}
    assert len(runs_of(boot, placement)) == 1


def test_the_runtime_is_given_the_earlier_of_both_deadlines(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    clock = float(int(time.monotonic()))  # the lease is renewed by the same clock
    monkeypatch.setattr("executions.worker.links.step_runner.time.monotonic", lambda: clock)
    run_in_stub = StubRuntime.run

    def note(self: StubRuntime, run: Run, *, deadline: float, **rest: Any) -> StepResult:
        deadlines.append(deadline - clock)
        return run_in_stub(self, run, deadline=deadline, **rest)

    monkeypatch.setattr(StubRuntime, "run", note)
    for left_s in (1000, 5):
        placement = start(acme, boot, {"timeout": "10s"})
        leave(acme, placement, left_s)
        run_link(links, placement, "s1")
    assert deadlines[0] == 10
    assert 4 < deadlines[1] <= 5


@pytest.mark.parametrize(("mode", "ended"), [("continue", "succeeded"), ("abort", "timed_out")])
def test_a_steps_own_timeout_is_a_failure_of_the_step(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: str, ended: str
) -> None:
    script(boot, flaky=fails(Code.TIMEOUT, "too late"))
    placement = start(acme, boot, {"uses": "flaky", "on_failure": mode}, {})
    assert drive(acme, links, placement).state == ended
    assert step_of(acme, placement.execution_id, "s1").code == "TIMEOUT"


def test_a_step_that_ended_in_time_has_its_own_timeout_though_its_lines_are_slow_to_write(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = start(acme, boot, {"uses": "flaky", "on_failure": "continue"}, {})
    clock = [float(int(time.monotonic()))]
    monkeypatch.setattr("executions.worker.links.step_runner.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("executions.transitions.claim.time.monotonic", lambda: clock[0])
    close = AttemptLog.close

    def slow(self: AttemptLog) -> AttemptOutput:
        clock[0] += 3600
        return close(self)

    monkeypatch.setattr(AttemptLog, "close", slow)
    script(boot, flaky=fails(Code.TIMEOUT, "too late"))
    assert run_link(links, placement, "s1")
    assert step_of(acme, placement.execution_id, "s1").message == "too late"
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_claimed_too_late_does_not_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: dict[str, Any]
) -> None:
    placement = start(acme, boot, mode, {})
    leave(acme, placement, -1)
    with pytest.raises(StepFailed, match="TIMEOUT"):
        run_link(links, placement, "s1")
    assert_timed_out(acme, boot, placement)
    assert runs_of(boot, placement) == []


def test_during_a_backoff_it_ends(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TRANSIENT_ERROR: 20_000})
    script(boot, flaky=fails(Code.TRANSIENT_ERROR))
    placement = start(acme, boot, {"uses": "flaky", "on_failure": "retry"}, {})
    leave(acme, placement, 0.3)
    with pytest.raises(StepFailed, match="TIMEOUT"):
        run_link(links, placement, "s1")
    assert_timed_out(acme, boot, placement)
    assert steps_of(acme, placement.execution_id) == {"s1": "failed", "s2": "skipped"}


def test_a_run_that_timed_out_while_it_recovered_says_so(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR), rescue=overstay)
    placement = start(acme, boot, {"uses": "flaky", **MODES[3]}, {})
    leave(acme, placement, SHORT)
    drive(acme, links, placement)
    assert_timed_out(acme, boot, placement)


def test_between_the_steps_of_the_express_lane_it_ends(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"uses": "flaky"}, {}, express=True)
    script(boot, flaky=doing(lambda: leave(acme, placement, -1), succeeds(1)))
    with pytest.raises(StepFailed, match="TIMEOUT"):
        run_link(links, placement, "s1")
    assert_timed_out(acme, boot, placement)
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "failed"}


def test_the_time_is_counted_over_all_placements(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {}, {}, timeout="100s")
    leave(acme, placement, 40)  # sixty have passed
    run_link(links, placement, "s1")
    boot.draining.set()
    LeaseLoop(boot).turn()
    boot.draining.clear()
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert 20 < ticket.time_left <= 40
    with tenant_scope(acme):
        Ticket.objects.update(time_left=0.0)
    again = place(acme, placement.execution_id, boot)
    with pytest.raises(StepFailed, match="TIMEOUT"):
        run_link(links, again, "s2")
    assert run_of(acme, placement.execution_id).state == ExecutionState.TIMED_OUT


def test_admission_starts_the_clock(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = start(acme, boot, {}, timeout="100s")
    with tenant_scope(acme):
        Ticket.objects.update(state="waiting", worker=None, deadline=None, time_left=70)
    admit()
    assert 60 < _left(acme, placement) <= 70


def _left(tenant: TenantRef, placement: Placement) -> float:
    with tenant_scope(tenant):
        ticket = Ticket.objects.annotate(now=Now()).get(execution_id=placement.execution_id)
    assert ticket.deadline is not None
    return float((ticket.deadline - ticket.now).total_seconds())
