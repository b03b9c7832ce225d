"""Runs of two tenants on real workers: through a Celery chain to a step in a child process, and back.

One tenant is trusted, and its runs have the level `shared`; the other is not, and its runs have `process`.
"""

import tempfile
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from executions.models import ExecutionEvent
from executions.placement.models import Worker
from executions.submission.cancel import request_cancel
from resources.runtimes.folder import PREFIX
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import (
    ended,
    no_slot_is_held,
    reload,
    start_run,
    step_runs,
    step_states,
)
from tests.debris import nest
from tests.waiting import wait_for
from trials.sandboxes import cgroups, sandboxed

Server = psycopg.Connection[tuple[object, ...]]
pytestmark = pytest.mark.usefixtures("both_levels")


def test_two_tenants_at_the_same_time_leave_no_row_with_each_other(
    acme: TenantRef,
    globex: TenantRef,
    both_levels: dict[str, str],
    start_worker: StartWorker,
    superuser: Server,
) -> None:
    workers = [start_worker().name, start_worker().name]
    add = {"uses": "test.add", "with": {"a": 1, "b": 2}}
    identity = {"uses": "test.identity"}
    runs = [(tenant, start_run(tenant, identity, add)) for tenant in (acme, globex, acme, globex)]
    for tenant, run in runs:
        assert ended(tenant, run).state == "succeeded"
        assert reload(tenant, run).isolation == both_levels[tenant.schema]
        with tenant_scope(tenant):
            seen: Any = run.steps.get(path="s1").output
        assert (seen["tenant_id"], seen["execution_id"]) == (tenant.schema, str(run.pk))
    for tenant in (acme, globex):
        found = superuser.execute(f"SELECT id FROM {tenant.schema}.executions_execution").fetchall()
        assert {row[0] for row in found} == {run.pk for owner, run in runs if owner == tenant}
    logins = superuser.execute(
        "SELECT DISTINCT application_name, usename FROM pg_stat_activity WHERE application_name = ANY(%s)",
        [workers],
    )
    assert set(logins.fetchall()) == {(worker, "isolane_worker") for worker in workers}
    no_slot_is_held()


def test_two_plain_workers_share_the_load(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    first, second = start_worker(), start_worker()
    runs = [
        (tenant, start_run(tenant, {"uses": "test.sleep", "with": {"seconds": 0.3}}))
        for tenant in (acme, globex) * 2
    ]
    used = {ended(tenant, run).worker for tenant, run in runs}
    assert used == {first.name, second.name}


def test_a_failing_step_stops_its_run_and_nothing_else(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    identity = {"uses": "test.identity"}
    fail = {"uses": "test.raise_error", "with": {"kind": "value"}}
    tenants = (acme, globex)
    runs = [(start_run(tenant, identity, fail, identity), tenant) for tenant in tenants]
    good = [(start_run(tenant, identity), tenant) for tenant in tenants]
    for bad, tenant in runs:
        run = ended(tenant, bad)
        assert (run.state, run.code) == ("failed", "UNKNOWN_ERROR")
        assert "hunter2" not in run.message
        states = [state for _, state, _ in step_states(tenant, bad)]
        assert states == ["succeeded", "failed", "skipped"]
    for run, tenant in good:
        assert ended(tenant, run).state == "succeeded"
    no_slot_is_held()


def test_a_step_that_exits_its_process_fails_its_run_only(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    for tenant, other in ((acme, globex), (globex, acme)):
        bad = start_run(tenant, {"uses": "test.exit", "with": {"code": 7}})
        good = start_run(other, {"uses": "test.identity"})
        found = ended(tenant, bad)
        assert (found.state, found.code) == ("failed", "UNKNOWN_ERROR")
        assert "exit code 7" in found.message
        assert ended(other, good).state == "succeeded"
    no_slot_is_held()


def test_no_files_and_no_end_of_a_runner_cost_a_worker_its_start_or_a_slot(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    stale = Path(tempfile.mkdtemp(prefix=PREFIX))
    nest(stale)
    start_worker(capacity=1)
    for step in (
        {"uses": "test.die_on_close", "with": {"number": 35}},
        {"uses": "test.leave_folders", "with": {"levels": 1_100}},
    ):
        assert ended(acme, start_run(acme, step)).state == "succeeded"
        assert ended(globex, start_run(globex, {"uses": "test.identity"})).state == "succeeded"
    no_slot_is_held()
    wait_for(lambda: not stale.exists(), "the folder of a dead worker to be gone", 40)


def test_a_timeout_kills_the_step_and_its_children(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker()
    pids = tmp_path / "pids"
    tmp_path.chmod(0o777)
    # In a sandbox the file is one of its own.
    files = {acme: str(pids), globex: "/tmp/pids"}
    slow = {
        tenant: {
            "uses": "test.sleep",
            "with": {"seconds": 60, "pid_file": file},
            "timeout": "500ms",
        }
        for tenant, file in files.items()
    }
    runs = [(tenant, start_run(tenant, step)) for tenant, step in slow.items()]
    for tenant, run in runs:
        found = ended(tenant, run)
        assert (found.state, found.code) == ("timed_out", "TIMEOUT")
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not psutil.pid_exists(int(pid)), f"process {pid} to be gone")  # type: ignore[misc]  # a bound loop variable
    assert sandboxed(worker.process.pid) == []
    for tenant in (acme, globex):
        assert ended(tenant, start_run(tenant, {"uses": "test.identity"})).state == "succeeded"
    no_slot_is_held()


def test_cancel_reaches_a_running_step(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    worker = start_worker()
    hang, last = {"uses": "test.sleep", "with": {"seconds": 60}}, {"uses": "test.identity"}
    tenants = (acme, globex)
    runs = [(tenant, start_run(tenant, hang, last)) for tenant in tenants]
    others = [
        (tenant, start_run(tenant, {"uses": "test.sleep", "with": {"seconds": 1}}))
        for tenant in tenants
    ]
    for tenant, run in runs:
        step_runs(tenant, run, "s1")
        with tenant_scope(tenant):
            request_cancel(run.pk, actor="test")
    for tenant, run in runs:
        assert ended(tenant, run, seconds=10).state == "cancelled"
        assert [state for _, state, _ in step_states(tenant, run)] == ["cancelled", "cancelled"]
    for tenant, run in others:
        assert ended(tenant, run).state == "succeeded"
    assert sandboxed(worker.process.pid) == []
    no_slot_is_held()


def test_a_long_chain_goes_in_windows(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    run = start_run(acme, *[{"uses": "test.identity"}] * 25)
    other = start_run(globex, *[{"uses": "test.identity"}] * 11)
    assert ended(acme, run).state == ended(globex, other).state == "succeeded"
    assert {attempt for _, _, attempt in step_states(acme, run)} == {1}


def test_a_killed_workers_run_goes_on_elsewhere_and_repeats_no_completed_step(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    killed, survivor = start_worker(capacity=3), start_worker(capacity=2)
    slow = {"uses": "test.sleep", "with": {"seconds": 2}}
    add = {"uses": "test.add", "with": {"a": 1, "b": 2}}
    later = {"uses": "test.add", "with": {"a": "${steps.s1}", "b": 1}}
    # The emptiest worker is given a run: the larger one the first, then each one of the two others.
    runs = [(tenant, start_run(tenant, add, slow, later)) for tenant in (acme, globex, globex)]
    for tenant, run in runs:
        step_runs(tenant, run, "s2")
    cut = [(tenant, run) for tenant, run in runs if reload(tenant, run).worker == killed.name]
    assert [tenant for tenant, _ in cut] == [acme, globex]
    left = psutil.Process(killed.process.pid).children(recursive=True)
    killed.kill()
    for tenant, run in runs:
        assert ended(tenant, run, seconds=60).state == "succeeded"
    # What was cut ran again, and that has used no attempt.
    for tenant, run in cut:
        assert step_states(tenant, run) == [(path, "succeeded", 1) for path in ("s1", "s2", "s3")]
        with tenant_scope(tenant):
            started = ExecutionEvent.objects.filter(execution=run, kind="step.started")
            assert list(started.order_by("sequence").values_list("step", flat=True)) == [
                "s1", "s2", "s2", "s3",
            ]  # fmt: skip
            assert run.steps.get(path="s3").output == 4  # it remembers what was done before
        assert reload(tenant, run).worker == survivor.name
    wait_for(lambda: not any(process.is_running() for process in left), "its processes to be gone")
    wait_for(lambda: cgroups([killed.process.pid]) == [], "its cgroups to be gone", 30)
    with platform_scope():
        assert [worker.node_name for worker in Worker.objects.all()] == [survivor.name]
    no_slot_is_held()


def test_a_drained_worker_hands_its_run_over_without_waiting_for_the_lease(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    workers = {worker.name: worker for worker in (start_worker(), start_worker())}
    step = {"uses": "test.sleep", "with": {"seconds": 1}}
    run = start_run(acme, step, step, step)
    other = start_run(globex, step, step)
    step_runs(acme, run, "s1")
    drained = workers.pop(reload(acme, run).worker)
    drained.terminate()
    assert ended(acme, run).state == ended(globex, other).state == "succeeded"
    # The step that ran was let finish: nothing ran twice.
    assert {attempt for _, _, attempt in step_states(acme, run)} == {1}
    assert [reload(acme, run).worker] == list(workers)
    assert drained.process.wait(timeout=20) == 0


def test_a_lost_message_is_sent_again(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, broker: "redis.Redis"
) -> None:
    start_worker()
    runs = [
        (tenant, start_run(tenant, *[{"uses": "test.sleep", "with": {"seconds": 0.2}}] * 4))
        for tenant in (acme, globex)
    ]
    step_runs(acme, runs[0][1], "s2")
    broker.flushall()
    for tenant, run in runs:
        assert ended(tenant, run).state == "succeeded"
        assert {attempt for _, _, attempt in step_states(tenant, run)} == {1}
