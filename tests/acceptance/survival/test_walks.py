"""One by one: what may go wrong with messages, cancels, waits and runtimes, on real workers."""

import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from django.utils import timezone

from executions.models import Execution
from executions.placement.models import Worker
from orchestrator.celery import app
from resources.runtimes.folder import PREFIX
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import StartWorker, WorkerProcess
from tests.acceptance.runs import ended, no_slot_is_held, reload, start_run, step_runs, step_states
from tests.acceptance.survival.judge import Judge, story
from tests.factories import set_quota
from tests.waiting import wait_for
from trials.sandboxes import cgroups, sandboxed

FOUND_WITHIN = timedelta(seconds=20)


def effect(judge: Judge, **step: Any) -> dict[str, Any]:
    return {"uses": "survival.plain", "with": {"folder": str(judge.folder)}, **step}


def take(judge: Judge, seconds: float, **step: Any) -> dict[str, Any]:
    given = {"folder": str(judge.folder), "seconds": seconds}
    return {"uses": "survival.take", "with": given, **step}


def once(*paths: str) -> dict[str, int]:
    return dict.fromkeys(paths, 1)


# --- messages
def test_messages_that_are_lost_or_come_twice(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    start_worker(fault="messages", capacity=6)
    keys = ["s1", "s2", "lost3", "s4", "s5", "s6", "lost7"]  # in the window, and at the end of one
    runs = [
        (tenant, start_run(tenant, *[effect(judge, key=key) for key in keys], express=express))
        for tenant in (acme, globex)
        for express in (False, True)
    ]
    for tenant, run in runs:
        assert ended(tenant, run).state == "succeeded"
        assert judge.starts(run) == once(*keys)
        assert {attempt for _, _, attempt in step_states(tenant, run)} == {1}
    no_slot_is_held()


# --- cancels
def test_a_cancel_while_a_step_is_claimed_and_between_two_links(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    start_worker(fault="cancels", capacity=8)
    keys = ("before_claim", "after_claim", "ahead", "between")
    for tenant, other in ((acme, globex), (globex, acme)):
        runs = {
            key: start_run(tenant, effect(judge, key=key), effect(judge), effect(judge))
            for key in keys
        }
        untouched = start_run(other, effect(judge), effect(judge))
        for key, run in runs.items():
            assert ended(tenant, run).state == "cancelled", key
        assert ended(other, untouched).state == "succeeded"
        assert judge.starts(runs["before_claim"]) == {}
        # The next one would have been claimed with its checkpoint.
        assert judge.starts(runs["ahead"]) == once("ahead")
        # Whether a step that was claimed before still begins, and ends, is left open; nothing comes after it.
        assert "s2" not in judge.starts(runs["after_claim"])
        assert "s3" not in judge.starts(runs["between"])
    no_slot_is_held()


# --- runtimes
def test_a_runtime_that_dies_in_a_step(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    start_worker(capacity=8)
    die = {"uses": "survival.die", "with": {"folder": str(judge.folder)}}
    mend = {"uses": "survival.mend", "with": {"folder": str(judge.folder)}}
    modes: dict[str, dict[str, Any]] = {
        "retry": {"on_failure": "retry", "retry": {"attempts": 2, "then": "continue"}},
        "continue": {"on_failure": "continue"},
        "recover": {"on_failure": "recover", "recover": mend},
    }
    states = {"retry": "failed", "continue": "failed", "recover": "succeeded"}
    runs = [
        (tenant, mode, start_run(tenant, effect(judge), {**die, **fields}, effect(judge)))
        for mode, fields in modes.items()
        for tenant in (acme, globex)
    ]
    for tenant, mode, run in runs:
        assert ended(tenant, run).state == "succeeded", mode
        assert judge.epochs(run, "s1") == [1]
        assert judge.epochs(run, "s3") == [2]
        assert "context.restarted" in story(tenant, run)
        # A death is no transient error, so it is not tried again.
        assert step_states(tenant, run)[1][1] == states[mode]
    no_slot_is_held()


# --- a worker that dies
@pytest.mark.timeout(180)
def test_what_a_killed_worker_was_at_goes_on_elsewhere_and_nothing_of_it_is_left(
    acme: TenantRef,
    globex: TenantRef,
    both_levels: dict[str, str],
    start_worker: StartWorker,
    judge: Judge,
    broker: "redis.Redis",
) -> None:
    set_quota(acme, 20)
    worker = start_worker(capacity=8)
    limited = {
        "uses": "survival.limited", "with": {"folder": str(judge.folder)}, "on_failure": "retry",
    }  # fmt: skip
    hold = {"uses": "survival.plain", "with": {"folder": str(judge.folder), "hold": "once"}}
    nap = {"uses": "flow.sleep", "with": {"seconds": 4}}
    backoff = start_run(acme, effect(judge), limited, effect(judge))
    express = start_run(acme, effect(judge), effect(judge), hold, effect(judge), express=True)
    asleep = start_run(acme, effect(judge), nap, effect(judge))
    last = start_run(acme, effect(judge), nap)
    other = start_run(globex, hold, effect(judge))
    wait_for(lambda: ("s2", "retrying", 1) in step_states(acme, backoff), "the backoff")
    step_runs(acme, express, "s3")
    step_runs(globex, other, "s1")
    for run in (asleep, last):
        wait_for(lambda run=run: reload(acme, run).state == "waiting", "a nap")  # type: ignore[misc]  # bound
    wait_for(lambda: judge.starts(express)["s3"] and judge.starts(other)["s1"], "both to begin")
    left, homes = runtimes_of(worker)
    assert bool(sandboxed(worker.process.pid)) == (both_levels[globex.schema] == "process")
    survivor = start_worker(capacity=8)
    killed_at = timezone.now()
    worker.kill()
    for tenant, run in (
        (acme, backoff),
        (acme, express),
        (acme, asleep),
        (acme, last),
        (globex, other),
    ):
        assert ended(tenant, run, seconds=60).state == "succeeded"
    assert judge.starts(backoff) == {"s1": 1, "s2": 2, "s3": 1}
    assert step_states(acme, backoff)[1] == ("s2", "succeeded", 2)  # the loss has used no attempt
    assert (judge.epochs(express, "s2"), judge.epochs(express, "s3")) == ([1], [1, 2])
    assert judge.starts(asleep) == once("s1", "s3")
    assert judge.starts(last) == once("s1")
    assert judge.epochs(other, "s1") == [1, 2]
    # What slept held nothing, so it has not even noticed.
    assert "placement.lost" not in story(acme, asleep) + story(acme, last)
    for tenant, run in ((acme, backoff), (acme, express), (globex, other)):
        with tenant_scope(tenant):
            lost = run.events.get(kind="placement.lost")
        assert (lost.data["worker"], lost.data["by"]) == (worker.name, survivor.name)
        assert lost.at - killed_at < FOUND_WITHIN
    no_slot_is_held()
    wait_for(lambda: not any(process.is_running() for process in left), "its processes to be gone")
    wait_for(lambda: not any(home.exists() for home in homes), "its folders to be gone", 30)
    wait_for(lambda: cgroups([worker.process.pid]) == [], "its cgroups to be gone", 30)
    with platform_scope():
        assert [row.node_name for row in Worker.objects.all()] == [survivor.name]
    with platform_scope():
        lane = Worker.objects.get().lane
    wait_for(lambda: set(broker.keys("lane.*")) <= {lane.encode()}, "its lane to be gone", 30)


def runtimes_of(worker: WorkerProcess) -> tuple[list[psutil.Process], list[Path]]:
    """Its processes, sandboxes among them, and the folders of its runners at `shared`."""
    found = psutil.Process(worker.process.pid).children(recursive=True)
    named = {Path(process.environ().get("HOME", "/nowhere")) for process in found}
    homes = [home for home in named if home.name.startswith(PREFIX) and home.exists()]
    assert homes
    return found, homes


# --- a worker that is stopped, and one that is deaf
@pytest.mark.timeout(240)
def test_workers_that_are_stopped_for_a_minute_and_one_that_does_not_hear(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, judge: Judge
) -> None:
    """Between the claim and OPEN, and between OPEN and RUN; and one whose consumer died while its lease is renewed."""
    stopped = []
    for fault in ("stopped before OPEN", "stopped before RUN"):
        worker = start_worker(fault=fault, capacity=1)
        run = start_run(acme, effect(judge), effect(judge))
        wait_for(lambda worker=worker: is_stopped(worker), "the worker to be stopped")  # type: ignore[misc]  # bound
        stopped.append((worker, run))
    deaf = start_worker(capacity=1)
    unheard = start_run(globex, take(judge, 1.0), effect(judge))
    step_runs(globex, unheard, "s1")
    with platform_scope():
        lane = Worker.objects.get(node_name=deaf.name).lane
    app.control.cancel_consumer(lane, destination=[deaf.name])
    start_worker()
    for _, run in stopped:
        assert ended(acme, run, seconds=60).state == "succeeded"
    assert ended(globex, unheard, seconds=90).state == "succeeded"
    assert deaf.process.wait(60) == 75
    assert "placement.handed_over" in story(globex, unheard)
    assert judge.starts(unheard) == once("s1", "s2")
    # A minute has passed, and they go on where they were.
    wait_for(lambda: minute_is_over(acme, stopped[-1][1]), "a minute to pass", 90)
    for worker, _ in stopped:
        worker.process.send_signal(signal.SIGCONT)
    for worker, run in stopped:
        assert worker.process.wait(30) == 75
        assert judge.starts(run) == once("s1", "s2"), judge.marks()
        assert story(acme, run).count("placement.lost") == 1
        assert reload(acme, run).state == "succeeded"
    no_slot_is_held()


def is_stopped(worker: WorkerProcess) -> bool:
    return psutil.Process(worker.process.pid).status() == psutil.STATUS_STOPPED


def minute_is_over(tenant: TenantRef, run: Execution) -> bool:
    with tenant_scope(tenant):
        claimed = run.events.get(kind="step.started", step="s1", data__epoch=1)
    return timezone.now() - claimed.at > timedelta(minutes=1)
