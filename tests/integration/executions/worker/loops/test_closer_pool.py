"""Ending placements in threads of their own."""

import threading

import pytest
from django.db import OperationalError, connection

from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.closer_pool import CloserPool
from executions.worker.loops.lease import LeaseLoop
from resources.placement import Placement
from tenants.scope import TenantRef
from tests.factories import make_boot, make_placed, run_of
from tests.integration.executions.worker.driving import run_link
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    return make_boot()


def test_the_lease_does_not_wait_for_an_ending_and_ends_nothing_twice(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    asked: list[object] = []
    boot.submit_close = asked.append
    boot.draining.set()
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert len(asked) == 1
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    (ending,) = asked
    assert callable(ending)
    ending()
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_work_is_done_elsewhere_and_an_error_stops_nothing(
    database: None, caplog: pytest.LogCaptureFixture
) -> None:
    closers, threads = CloserPool(), []

    def away() -> None:
        raise OperationalError("gone\nwith details")

    def broken() -> None:
        raise ValueError("a bug")

    def works() -> None:
        threads.append(threading.current_thread().name)
        connection.close()

    for work in (away, broken, works):
        closers.submit(work)
    wait_for(lambda: threads, "the work to be done")
    closers.stop()
    assert threads[0].startswith("closer")
    told = [line.getMessage() for line in caplog.records if line.name.endswith("closer_pool")]
    assert sorted(told) == ["not ended", "not ended: the database: gone"]


def test_an_overdue_run_has_its_outcome_before_its_context_is_torn_down(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement: Placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    seen: list[str] = []

    def look(*_: object) -> None:
        seen.append(run_of(acme, placement.execution_id).outcome)

    monkeypatch.setattr("executions.worker.loops.lease.dispose", look)
    LeaseLoop(boot)._end(placement, PlacementEnd(reason=EndReason.OVERDUE), overdue=True)
    assert seen == [ExecutionState.TIMED_OUT]
    assert run_of(acme, placement.execution_id).state == ExecutionState.TIMED_OUT
