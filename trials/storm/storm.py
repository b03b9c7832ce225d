"""One storm from its definitions to the list of what it has left.

Timing: minutes. Model: sync, one thread; workers are processes of their own. Guarantee: the workers end with it.
Failure: bubble; what is left is no failure but the result.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executions.services.publishing import publish
from tenants.scope import TenantRef, tenant_scope
from trials.storm import plan
from trials.storm.definitions import define
from trials.storm.leftovers import FarSides, in_the_ledger, on_the_machine, unrecorded
from trials.storm.weather import Say, Seen, Storm, endings
from trials.storm.workers import Workers

SETTLE_SECONDS = 60.0
POLL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of it, and whether a worker is stopped for longer than its lease."""

    runs: int
    seed: int
    workers: int
    freeze: bool


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """How everything ended, and what did not."""

    left: list[str]
    moods: Counter[str]
    runs: Counter[str]
    records: Counter[str]
    seen: Seen
    settled_s: float  # after the end of the last run


def raise_storm(
    tenants: Sequence[TenantRef], far: FarSides, folder: Path, size: Size, *, say: Say
) -> Aftermath:
    """Raise it over workers whose files are below the folder; the tenants are new."""
    made_before = far.made_roles()
    workers = Workers(folder)
    storm = Storm(tenants, workers, far, say=say)
    try:
        for _ in range(size.workers):
            workers.start()
        storm.wait_for_workers(size.workers)
        blueprints = plan.documents(size.seed)
        for tenant in tenants:
            _prepare(tenant, far, blueprints)
        names = [str(blueprint["name"]) for blueprint in blueprints]
        storm.rage(plan.runs(size.seed, size.runs, names), freeze=size.freeze)
        say("all runs have ended")
        ended = time.monotonic()
        pids = [worker.pid for worker in workers.running]
        left = _settled(lambda: far.left() + in_the_ledger(tenants) + on_the_machine(folder, pids))
        settled_s = time.monotonic() - ended
    finally:
        workers.stop_all()
    left += on_the_machine(folder, []) + unrecorded(far.made_roles() - made_before, tenants)
    moods, runs, records = endings(tenants)
    return Aftermath(
        left=left, moods=moods, runs=runs, records=records, seen=storm.seen, settled_s=settled_s
    )


def _prepare(tenant: TenantRef, far: FarSides, blueprints: Sequence[dict[str, Any]]) -> None:
    define(tenant, far.customer, far.recorder)
    with tenant_scope(tenant):
        for blueprint in blueprints:
            publish(blueprint)


def _settled(look: Callable[[], list[str]]) -> list[str]:
    """Nothing, as soon as nothing is left; else what is left after the longest wait."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left
