"""Where probes run: published and submitted through the ordinary services, followed to their end, looked at.

Timing: request-time; following a run polls it. Model: sync; the runs themselves happen in workers.
Guarantee: as the services'. Failure: bubble; a run that does not end is cancelled, and NotRun says so.
"""

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.models import Execution, ResourceRecord, Step
from executions.placement.dispatch import admit_and_send
from executions.selectors.resource_records import records
from executions.services.publishing import publish
from executions.states import TERMINAL_EXECUTION
from executions.submission.submit import AlreadyEnded, request_cancel, submit
from foundation.errors import Unavailable
from orchestrator.norp.observations import LedgerEntry, RunSeen, Use
from orchestrator.norp.probes import Document, ProbedDefinition
from orchestrator.norp.watcher import ConnectionWatcher
from tenants.scope import tenant_scope

POLL_SECONDS = 0.05
CONNECTION_IDS = ("client_id", "pid")  # how far sides call a connection


class NotRun(Unavailable):
    """The tests could not be run; that says nothing of whether they would pass."""

    code = "norp_not_run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A probe that was submitted."""

    subject: ProbedDefinition
    execution_id: UUID


class Stand:
    """Runs probes of one far side at one level."""

    def __init__(
        self, watcher: ConnectionWatcher, *, level: str, requested_by: str, run_seconds: float
    ) -> None:
        self.level = level
        self.seen: list[RunSeen] = []
        self._watcher = watcher
        self._requested_by = requested_by
        self._run_seconds = run_seconds

    def start(self, subject: ProbedDefinition, document: Document, **inputs: Any) -> Started:
        """Publish a probe and submit a run of it."""
        with tenant_scope(subject.tenant):
            published = publish(document)
        run = submit(
            tenant=subject.tenant,
            blueprint=published.name,
            version=published.number,
            inputs=inputs,
            requested_by=self._requested_by,
        )
        admit_and_send(bounded=True)
        return Started(subject=subject, execution_id=run.pk)

    def finish(self, started: Started) -> RunSeen:
        """Wait for the run's end, and look at once what is left of it."""
        subject, execution_id = started.subject, started.execution_id
        run = self._ended(started)
        left = self._watcher.left(execution_id)
        gone_s = self._watcher.gone_s(execution_id)
        with tenant_scope(subject.tenant):
            steps = list(run.steps.order_by("position"))
            ledger = tuple(_entry(row) for row in records(run))
        seen = RunSeen(
            execution_id=str(execution_id),
            tenant=subject.tenant.schema,
            level=run.isolation,
            state=run.state,
            code=run.code,
            uses=tuple(use for step in steps if (use := _use(step))),
            ledger=ledger,
            connections=self._watcher.connections(execution_id),
            issued=self._watcher.issued(execution_id),
            left=left,
            gone_s=gone_s,
        )
        self.seen.append(seen)
        return seen

    def run(self, subject: ProbedDefinition, document: Document, **inputs: Any) -> RunSeen:
        """Start and finish."""
        return self.finish(self.start(subject, document, **inputs))

    def _ended(self, started: Started) -> Execution:
        tenant = started.subject.tenant
        deadline = time.monotonic() + self._run_seconds
        while time.monotonic() < deadline:
            self._watcher.check()
            with tenant_scope(tenant):
                run = Execution.objects.get(pk=started.execution_id)
            if run.state in TERMINAL_EXECUTION:
                return run
            time.sleep(POLL_SECONDS)
        with tenant_scope(tenant):
            try:
                request_cancel(started.execution_id, actor=self._requested_by)
            except AlreadyEnded:
                return Execution.objects.get(pk=started.execution_id)
        raise NotRun(
            f"exec_{started.execution_id} of {tenant.schema} was {run.state} after {self._run_seconds:g} s and is"
            " cancelled; see that workers run and have free slots ('isolane status')."
        )


def _use(step: Step) -> Use | None:
    output = step.output
    if not isinstance(output, dict) or "resource_id" not in output:
        return None
    said = output.get("said") or {}
    connection = next((str(said[name]) for name in CONNECTION_IDS if name in said), "")
    return Use(step=step.path, resource_id=output["resource_id"], connection_id=connection)


def _entry(row: ResourceRecord) -> LedgerEntry:
    lived = row.closed_at - row.opened_at if row.closed_at else None
    return LedgerEntry(
        resource_id=row.resource_id,
        type=row.type,
        step=row.step,
        epoch=row.epoch,
        ended=row.ended,
        seconds=round(lived.total_seconds(), 3) if lived is not None else None,
    )
