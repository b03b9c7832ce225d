"""Raising a storm: submits, cancels, kills and freezes, and waits until every run has ended.

Timing: minutes; looks five times a second. Model: sync, one thread; the runs are at work in workers of their own.
Guarantee: best-effort. Failure: a run that does not end in time, or a worker that ends by itself, is an error.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from executions.models import Execution, ResourceRecord, StepLog
from executions.placement.dispatch import admit_and_send
from executions.placement.models import Worker
from executions.states import TERMINAL_EXECUTION
from executions.submission.cancel import AlreadyEnded, request_cancel
from executions.submission.submit import RunRequest, submit
from tenants.scope import TenantRef, platform_scope, tenant_scope
from trials.storm.leftovers import FarSides, executions_in
from trials.storm.plan import PlannedRun
from trials.storm.workers import Workers

AT_ONCE = 60  # runs that were submitted and have not ended
POLL_SECONDS = 0.2
SAY_SECONDS = 10.0
STUCK_SECONDS = 180.0  # without the end of any run
MOOD = "mood "  # how a step says in its log what it is about to do
FROZEN_SECONDS = 20.0  # longer than a lease

Say = Callable[[str], None]


@dataclass
class Seen:
    """What the far sides still had of a run after its end, while the storm went on."""

    longest: dict[UUID, tuple[float, str]] = field(default_factory=dict)  # seconds, what
    most: int = 0  # things at once, of runs that had not ended, too

    def note(self, ended: dict[UUID, datetime], left: dict[UUID, str], at: datetime) -> None:
        """Things of runs that had ended when it was looked."""
        for execution_id, line in left.items():
            if (end := ended.get(execution_id)) and end < at:
                self.longest[execution_id] = ((at - end).total_seconds(), line)


class Storm:
    """Runs of two tenants, over workers of which one is killed and one is frozen meanwhile."""

    def __init__(
        self, tenants: Sequence[TenantRef], workers: Workers, far: FarSides, *, say: Say
    ) -> None:
        self._tenants = {tenant.schema: tenant for tenant in tenants}
        self._workers = workers
        self._far = far
        self._say = say
        self._cancels: list[tuple[float, TenantRef, UUID]] = []
        self.seen = Seen()
        self.submitted = 0

    def rage(self, planned: Sequence[PlannedRun], *, freeze: bool) -> None:
        """Have them all run to their end."""
        waiting = list(reversed(planned))
        third = len(planned) // 3
        calamities = [(2 * third, self._freeze_one)] if freeze else []
        calamities.append((third, self._kill_one))
        said, moved, done = time.monotonic(), time.monotonic(), 0
        while done < len(planned):
            while waiting and self.submitted - done < AT_ONCE:
                self._submit(waiting.pop())
            admit_and_send()
            self._cancel_due()
            self._workers.check()
            before, done = done, self._look()
            if calamities and done >= calamities[-1][0]:
                calamities.pop()[1]()
            now = time.monotonic()
            moved = now if done > before else moved
            if now - moved > STUCK_SECONDS:
                raise RuntimeError(f"no run has ended for {STUCK_SECONDS:.0f} s; {done} have")
            if now - said > SAY_SECONDS:
                self._say(f"{done} of {len(planned)} runs have ended")
                said = now
            time.sleep(POLL_SECONDS)

    def wait_for_workers(self, number: int, seconds: float = 60.0) -> None:
        """Until so many have registered."""
        deadline = time.monotonic() + seconds
        while self._registered() < number:
            self._workers.check()
            if time.monotonic() > deadline:
                raise RuntimeError("the workers did not register in time")
            time.sleep(POLL_SECONDS)

    # --- from outside
    def _submit(self, planned: PlannedRun) -> None:
        tenant = self._tenants[planned.tenant]
        run = submit(
            tenant,
            RunRequest(
                blueprint=planned.blueprint, inputs={}, requested_by="storm", seed=planned.seed
            ),
        ).execution
        self.submitted += 1
        if planned.cancel_after is not None:
            self._cancels.append((time.monotonic() + planned.cancel_after, tenant, run.pk))

    def _cancel_due(self) -> None:
        now = time.monotonic()
        due = [cancel for cancel in self._cancels if cancel[0] <= now]
        self._cancels = [cancel for cancel in self._cancels if cancel[0] > now]
        for _, tenant, run_id in due:
            with tenant_scope(tenant), suppress(AlreadyEnded):
                request_cancel(run_id, actor="storm")

    def _kill_one(self) -> None:
        self._say(f"kill -9 of {self._workers.kill().name}; another one starts")
        self._workers.start()

    def _freeze_one(self) -> None:
        frozen = self._workers.freeze()
        self._say(f"{frozen.name} is stopped for {FROZEN_SECONDS:.0f} s; another one starts")
        self._workers.start()
        until = time.monotonic() + FROZEN_SECONDS
        while time.monotonic() < until:
            admit_and_send()
            self._look()
            time.sleep(POLL_SECONDS)
        self._workers.thaw(frozen)
        self._say(f"{frozen.name} went on, and ended with status {frozen.process.returncode}")

    # --- looking
    def _look(self) -> int:
        """How many have ended; and whether a far side still has something of one of them."""
        at = timezone.now()
        ended: dict[UUID, datetime] = {}
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                found = Execution.objects.filter(state__in=sorted(TERMINAL_EXECUTION)).only(
                    "finished_at"
                )
                ended |= {run.pk: run.finished_at for run in found if run.finished_at}
        left = self._far.left()
        self.seen.most = max(self.seen.most, len(left))
        self.seen.note(ended, executions_in(left), at)
        return len(ended)

    def _registered(self) -> int:
        names = [worker.name for worker in self._workers.running]
        with platform_scope():
            return Worker.objects.filter(node_name__in=names).count()


def endings(
    tenants: Sequence[TenantRef],
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How steps meant to end, how runs did, and how what they had of resources did."""
    moods: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for tenant in tenants:
        with tenant_scope(tenant):
            said = StepLog.objects.filter(message__startswith=MOOD)
            moods.update(line[len(MOOD) :] for line in said.values_list("message", flat=True))
            for state, code in Execution.objects.values_list("state", "code"):
                runs[f"{state} {code}".strip()] += 1
            for type_, ended in ResourceRecord.objects.values_list("type", "ended"):
                records[f"{type_} {ended or 'open'}"] += 1
    return moods, runs, records
