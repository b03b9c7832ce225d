"""The scenario of a storm trial, from its definitions to the list of what is left.

Timing: minutes.
Model: sync, one thread; workers are processes of their own.
Guarantee: the workers end with the scenario.
Failure: bubble; what is left behind is a result, not an error.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executions.services.publishing import publish
from resources.runtimes.folder import PREFIX
from tenants.scope import TenantRef, tenant_scope
from trials import sandboxes
from trials.output import Progress
from trials.settling import left_after
from trials.storm import plan
from trials.storm.definitions import define
from trials.storm.driver import RemoteState, RunDriver, levels_of, outcomes
from trials.storm.orphans import Remotes, in_the_ledger, on_the_machine, unrecorded
from trials.storm.workers import Workers

SETTLE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """Load and seed; with `freeze` a worker is stopped for longer than its lease."""

    runs: int
    seed: int
    workers: int
    freeze: bool


@dataclass(frozen=True, kw_only=True)
class StormResult:
    """Orphans and counts of the trial."""

    left: list[str]
    behaviours: Counter[str]  # of steps
    runs: Counter[str]
    records: Counter[str]
    levels: Counter[str]  # of runs
    remote_state: RemoteState
    settled_s: float  # after the end of the last run


def run_storm(
    trusted: Sequence[TenantRef],
    untrusted: Sequence[TenantRef],
    remotes: Remotes,
    folder: Path,
    size: Size,
    *,
    progress: Progress,
) -> StormResult:
    """Run the scenario for new tenants; the files of the workers are below the folder."""
    tenants = [*trusted, *untrusted]
    roles_before, mounts_before = remotes.created_roles(), sandboxes.mounts()
    workers = Workers(folder)
    driver = RunDriver(tenants, workers, remotes, progress=progress)
    try:
        for _ in range(size.workers):
            workers.start()
        driver.wait_for_workers(size.workers)
        blueprints = plan.documents(size.seed)
        _prepare(tenants, remotes, blueprints)
        names = [str(blueprint["name"]) for blueprint in blueprints]
        turns = [tenant.schema for tenant in tenants]
        driver.run(plan.runs(size.seed, size.runs, names, turns), freeze=size.freeze)
        progress("all runs have ended")
        ended = time.monotonic()
        living = [worker.pid for worker in workers.running]
        left = left_after(
            lambda: [
                *remotes.left(),
                *in_the_ledger(tenants),
                *on_the_machine(folder, living),
                *sandboxes.cgroups(workers.pids),
            ],
            SETTLE_SECONDS,
        )
        settled_s = time.monotonic() - ended
    finally:
        workers.stop_all()
    left += [*on_the_machine(folder, []), *sandboxes.cgroups(workers.pids)]
    left += [*(sandboxes.mounts() - mounts_before), *map(str, folder.glob(f"{PREFIX}*"))]
    left += unrecorded(remotes.created_roles() - roles_before, tenants)
    behaviours, runs, records = outcomes(tenants)
    return StormResult(
        left=left,
        behaviours=behaviours,
        runs=runs,
        records=records,
        levels=levels_of(tenants),
        remote_state=driver.remote_state,
        settled_s=settled_s,
    )


def _prepare(
    tenants: Sequence[TenantRef], remotes: Remotes, blueprints: Sequence[dict[str, Any]]
) -> None:
    for tenant in tenants:
        define(tenant, remotes.customer, remotes.recorder)
        with tenant_scope(tenant):
            for blueprint in blueprints:
                publish(blueprint)
