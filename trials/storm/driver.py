"""Drive the runs of a storm trial to their end: submit, cancel, kill and freeze workers, poll.

Timing: minutes; polls five times per second.
Model: sync, one thread; workers are processes of their own.
Guarantee: best-effort.
Failure: a run that does not end in time, or a worker that ends by itself, is an error.
"""

import time
from collections import Counter
from collections.abc import Sequence
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
from trials.output import Progress
from trials.storm.orphans import Remotes, executions_in
from trials.storm.plan import PlannedRun
from trials.storm.workers import Workers

AT_ONCE = 60  # open runs
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 10.0
STUCK_SECONDS = 180.0  # without the end of any run
BEHAVIOUR = "behaviour "  # prefix of the log line in which a step names its behaviour
FROZEN_SECONDS = 20.0  # longer than a lease


@dataclass
class RemoteState:
    """Things that existed at the remotes during the trial, and those that outlived their run."""

    longest: dict[UUID, tuple[float, str]] = field(
        default_factory=dict
    )  # seconds after the end, and what
    most: int = 0  # things at once, of all runs

    def note(self, ended: dict[UUID, datetime], left: dict[UUID, str], at: datetime) -> None:
        """Note things of runs that had ended at that time."""
        for execution_id, line in left.items():
            if (end := ended.get(execution_id)) and end < at:
                self.longest[execution_id] = ((at - end).total_seconds(), line)


class RunDriver:
    """Runs of all tenants, while one worker is killed and another one is frozen."""

    def __init__(
        self,
        tenants: Sequence[TenantRef],
        workers: Workers,
        remotes: Remotes,
        *,
        progress: Progress,
    ) -> None:
        self._tenants = {tenant.schema: tenant for tenant in tenants}
        self._workers = workers
        self._remotes = remotes
        self._progress = progress
        self._cancels: list[tuple[float, TenantRef, UUID]] = []
        self.remote_state = RemoteState()
        self.submitted = 0

    def run(self, planned: Sequence[PlannedRun], *, freeze: bool) -> None:
        """Run all of them to their end."""
        waiting = list(reversed(planned))
        third = len(planned) // 3
        faults = [(2 * third, self._freeze_one)] if freeze else []
        faults.append((third, self._kill_one))
        last_progress, last_end, done = time.monotonic(), time.monotonic(), 0
        while done < len(planned):
            while waiting and self.submitted - done < AT_ONCE:
                self._submit(waiting.pop())
            admit_and_send()
            self._cancel_due()
            self._workers.check()
            before, done = done, self._poll()
            if faults and done >= faults[-1][0]:
                faults.pop()[1]()
            now = time.monotonic()
            last_end = now if done > before else last_end
            if now - last_end > STUCK_SECONDS:
                raise RuntimeError(f"no run has ended for {STUCK_SECONDS:.0f} s; {done} have")
            if now - last_progress > PROGRESS_SECONDS:
                self._progress(f"{done} of {len(planned)} runs have ended")
                last_progress = now
            time.sleep(POLL_SECONDS)

    def wait_for_workers(self, number: int, seconds: float = 60.0) -> None:
        """Wait until this many workers have registered."""
        deadline = time.monotonic() + seconds
        while self._registered() < number:
            self._workers.check()
            if time.monotonic() > deadline:
                raise RuntimeError("the workers did not register in time")
            time.sleep(POLL_SECONDS)

    # --- submissions and faults
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
        self._progress(f"kill -9 of {self._workers.kill().name}; another worker starts")
        self._workers.start()

    def _freeze_one(self) -> None:
        frozen = self._workers.freeze()
        self._progress(
            f"{frozen.name} is stopped for {FROZEN_SECONDS:.0f} s; another worker starts"
        )
        self._workers.start()
        until = time.monotonic() + FROZEN_SECONDS
        while time.monotonic() < until:
            admit_and_send()
            self._poll()
            time.sleep(POLL_SECONDS)
        self._workers.thaw(frozen)
        self._progress(f"{frozen.name} continued and ended with status {frozen.process.returncode}")

    # --- polling
    def _poll(self) -> int:
        """Return how many runs have ended; note what the remotes have."""
        at = timezone.now()
        ended: dict[UUID, datetime] = {}
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                found = Execution.objects.filter(state__in=sorted(TERMINAL_EXECUTION)).only(
                    "finished_at"
                )
                ended |= {run.pk: run.finished_at for run in found if run.finished_at}
        left = self._remotes.left()
        self.remote_state.most = max(self.remote_state.most, len(left))
        self.remote_state.note(ended, executions_in(left), at)
        return len(ended)

    def _registered(self) -> int:
        names = [worker.name for worker in self._workers.running]
        with platform_scope():
            return Worker.objects.filter(node_name__in=names).count()


def outcomes(
    tenants: Sequence[TenantRef],
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the behaviours of steps, the states of runs, and the ends of resource records."""
    behaviours: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for tenant in tenants:
        with tenant_scope(tenant):
            named = StepLog.objects.filter(message__startswith=BEHAVIOUR)
            behaviours.update(
                line[len(BEHAVIOUR) :] for line in named.values_list("message", flat=True)
            )
            for state, code in Execution.objects.values_list("state", "code"):
                runs[f"{state} {code}".strip()] += 1
            for type_, ended in ResourceRecord.objects.values_list("type", "ended"):
                records[f"{type_} {ended or 'open'}"] += 1
    return behaviours, runs, records


def levels_of(tenants: Sequence[TenantRef]) -> Counter[str]:
    """Count the runs of each isolation level."""
    found: Counter[str] = Counter()
    for tenant in tenants:
        with tenant_scope(tenant):
            found.update(Execution.objects.values_list("isolation", flat=True))
    return found
