"""Whatever goes wrong while a runtime is taken down, its placement ends, and so do the others."""

import pytest
import redis

from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.lanes import lane_of
from executions.worker.links.closing import end_without_link
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.housekeeping import Housekeeping
from executions.worker.loops.lease import LeaseLoop, kill_runtimes
from isolane.limits import Usage
from resources.placement import Placement
from resources.runtimes.stub import StubRuntime, succeeds
from tenants.scope import TenantRef
from tests.factories import WORK, backend_of, make_placed, place, run_of, ticket_of
from tests.integration.executions.worker.driving import (
    drive,
    let_its_time_come,
    run_link,
    script,
    setting,
)
from tests.integration.executions.worker.lines import Lines

pytestmark = pytest.mark.usefixtures("neighbour", "broker")
FAULTS = [
    OSError(24, "Too many open files"),
    RecursionError("too deep"),
    ValueError("35 is no signal"),
]


def raising(error: Exception) -> object:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_runtime_that_cannot_be_closed_keeps_no_placement(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    placement = make_placed(acme, boot)
    monkeypatch.setattr(StubRuntime, "close", raising(error))
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert ticket_of(placement.execution_id) is None
    assert boot.contexts.get(placement.key) is None
    (told,) = lines.of("resources.runtimes.faults")
    assert told["event"] == "TEARDOWN_FAULT"


# --- usage
def used(tenant: TenantRef, placement: Placement) -> tuple[float, float]:
    run = run_of(tenant, placement.execution_id)
    return run.cpu_seconds, run.peak_ram_mb


def test_what_its_runtimes_have_used_is_written_with_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    backend_of(boot).usage = Usage(cpu_seconds=0.25, peak_ram_mb=30)
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    assert used(acme, placement) == (0, 0)  # known once the runtime is closed
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert used(acme, placement) == (0.25, 30)


def test_each_context_of_a_parked_run_counts(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    backend_of(boot).usage = Usage(cpu_seconds=0.25, peak_ram_mb=30)
    script(boot, **{WORK: setting(None, pause_s=90)})
    placement = make_placed(acme, boot)
    assert drive(acme, links, placement).state == ExecutionState.WAITING
    assert used(acme, placement) == (0.25, 30)
    let_its_time_come(acme, placement)
    script(boot, **{WORK: succeeds({})})
    backend_of(boot).usage = Usage(cpu_seconds=0.5, peak_ram_mb=10)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert used(acme, placement) == (0.75, 30)


def test_a_placement_that_the_loop_ends_counts_too(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    backend_of(boot).usage = Usage(cpu_seconds=0.25, peak_ram_mb=30)
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    LeaseLoop(boot).hand_back_idle()
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED
    assert used(acme, placement) == (0.25, 30)


def test_a_placement_that_another_worker_ends_adds_nothing(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    backend_of(boot).usage = Usage(cpu_seconds=0.25, peak_ram_mb=30)
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    end_without_link(placement, PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by="w2@test"))
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED
    assert used(acme, placement) == (0, 0)


def test_a_runtime_that_cannot_say_what_it_used_keeps_no_placement(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = make_placed(acme, boot)
    monkeypatch.setattr(StubRuntime, "usage", property(raising(OSError(24, "no"))))  # type: ignore[arg-type]
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert used(acme, placement) == (0, 0)


def test_a_runtime_that_cannot_be_killed_costs_no_other_its_end(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_placed(acme, boot), make_placed(acme, boot)
    run_link(links, first, "one")
    run_link(links, second, "one")
    stubborn, other = backend_of(boot).runtimes[-2:]
    monkeypatch.setattr(stubborn, "kill", raising(ValueError("no")))
    kill_runtimes(boot)
    assert not other.alive


def test_a_lost_context_is_torn_down_elsewhere_and_the_lease_does_not_wait(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    asked: list[object] = []
    boot.submit_close = asked.append
    context = boot.contexts.get(placement.key)
    assert context is not None
    LeaseLoop(boot)._drop(context)
    (ending,) = asked
    assert backend_of(boot).closed == []
    assert callable(ending)
    ending()
    assert [closed.execution_id for closed in backend_of(boot).closed] == [placement.execution_id]
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING


def test_a_sweep_that_fails_stops_no_other(
    boot: WorkerBoot, broker: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.lpush(lane_of("dead"), "for nobody")
    monkeypatch.setattr(backend_of(boot), "sweep", raising(RecursionError("too deep")))
    Housekeeping(boot).turn()
    assert broker.keys() == []
