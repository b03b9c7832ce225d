"""Whatever goes wrong while a runtime is taken down, its placement ends, and so do the others."""

import pytest
import redis

from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.lanes import lane_of
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.housekeeping import Housekeeping
from executions.worker.loops.lease import LeaseLoop, kill_runtimes
from resources.runtimes.stub import StubRuntime
from tenants.scope import TenantRef
from tests.factories import backend_of, make_placed, run_of, ticket_of
from tests.integration.executions.worker.driving import drive, run_link
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
