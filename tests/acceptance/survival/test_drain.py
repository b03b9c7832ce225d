"""Workers that are asked to end: nothing is lost, nothing repeated, and nobody waits for a lease."""

from typing import Any

import pytest

from executions.models import Execution
from executions.placement.models import Worker
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import StartWorker, WorkerProcess
from tests.acceptance.runs import ended, no_slot_is_held, reload, start_run, step_runs
from tests.acceptance.survival.judge import Judge, story
from tests.factories import set_quota
from tests.waiting import wait_for

LEASE_SECONDS = 15


def take(judge: Judge, seconds: float) -> dict[str, Any]:
    return {
        "uses": "survival.take",
        "with": {"folder": str(judge.folder), "seconds": seconds},
        "timeout": "120s",
    }


@pytest.mark.timeout(180)
def test_a_rolling_restart_under_load_loses_nothing_and_repeats_nothing(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    for tenant in (acme, globex):
        set_quota(tenant, 50)
    workers = [start_worker(), start_worker()]
    steps = [take(judge, 0.5)] * 8
    runs: list[tuple[TenantRef, Execution]] = []
    for worker in workers:
        start_worker()
        # As many as all three can hold: then this one has some, too.
        runs += [
            (tenant, start_run(tenant, *steps, express=number % 3 == 0))
            for number in range(6)
            for tenant in (acme, globex)
        ]
        wait_for(lambda worker=worker: holds_runs(worker), "the worker to be at work")  # type: ignore[misc]  # bound
        worker.terminate()
        assert worker.process.wait(30) == 0
    for tenant, run in runs:
        assert ended(tenant, run, seconds=60).state == "succeeded"
        assert judge.starts(run) == {f"s{number}": 1 for number in range(1, 9)}
        assert "placement.lost" not in story(tenant, run)
    handed_over = [run for tenant, run in runs if "placement.handed_over" in story(tenant, run)]
    assert handed_over
    no_slot_is_held()


def holds_runs(worker: WorkerProcess) -> bool:
    with platform_scope():
        return Worker.objects.get(node_name=worker.name).tickets.exists()


@pytest.mark.parametrize("patience", [True, False])
def test_a_step_that_does_not_end_is_cut_after_the_grace_time_or_at_the_second_request(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge, patience: bool
) -> None:
    worker = start_worker()
    hold = {"uses": "survival.plain", "with": {"folder": str(judge.folder), "hold": "once"}}
    runs = [(tenant, start_run(tenant, hold)) for tenant in (acme, globex)]
    for tenant, run in runs:
        step_runs(tenant, run, "s1")
    wait_for(lambda: len(judge.marks()) == len(runs), "both effects to begin")
    start_worker()
    worker.terminate()
    wait_for(lambda: drains(worker), "the worker to say that it drains")
    assert worker.process.poll() is None  # it lets them finish
    if not patience:
        worker.terminate()
    # Well before the grace time is over, if nobody has the patience for it.
    assert worker.process.wait(20 if patience else 8) == 0
    for tenant, run in runs:
        assert ended(tenant, run).state == "succeeded"
        assert judge.epochs(run, "s1") == [1, 2]
        assert story(tenant, run).count("placement.handed_over") == 1
        assert seconds_between_placements(tenant, run) < LEASE_SECONDS
    no_slot_is_held()


def drains(worker: WorkerProcess) -> bool:
    with platform_scope():
        return Worker.objects.filter(node_name=worker.name, draining=True).exists()


def seconds_between_placements(tenant: TenantRef, run: Execution) -> float:
    with tenant_scope(tenant):
        over = run.events.get(kind="placement.handed_over").at
        again = run.events.filter(kind="placement.began").latest("sequence").at
    return float((again - over).total_seconds())


def test_a_worker_that_is_asked_to_end_while_it_starts_leaves_nothing(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    """The signal comes right after it has registered."""
    worker = start_worker()
    worker.terminate()
    assert worker.process.wait(30) == 0
    with platform_scope():
        assert not Worker.objects.exists()
    start_worker()
    for tenant in (acme, globex):
        run = start_run(tenant, take(judge, 0.0))
        assert ended(tenant, run).state == "succeeded"
        assert reload(tenant, run).worker
