"""The runner of probes: publishes and submits them as users do, follows them to their end and observes them.

Timing: request-time; following a run polls it.
Model: sync; the runs themselves happen in workers.
Guarantee: as the services'.
Failure: bubble; a run that does not end is cancelled, and NotRun says so.
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
from executions.submission.cancel import AlreadyEnded, request_cancel
from executions.submission.submit import RunRequest, submit
from foundation.errors import Unavailable
from orchestrator.norp.observations import ObservedRecord, ObservedRun, ObservedUse
from orchestrator.norp.probes import Document, ProbedDefinition
from orchestrator.norp.watcher import ConnectionWatcher
from tenants.scope import tenant_scope

POLL_SECONDS = 0.05
CONNECTION_IDS = ("client_id", "pid")  # as remote servers call the id of a connection


class NotRun(Unavailable):
    """The tests could not be run; they may or may not pass."""

    code = "norp_not_run"


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedProbe:
    """A probe that was submitted."""

    subject: ProbedDefinition
    execution_id: UUID


class ProbeRunner:
    """Runs probes of one remote server at one level."""

    def __init__(
        self, watcher: ConnectionWatcher, *, level: str, requested_by: str, run_seconds: float
    ) -> None:
        self.level = level
        self.observed: list[ObservedRun] = []
        self._watcher = watcher
        self._requested_by = requested_by
        self._run_seconds = run_seconds

    def start(self, subject: ProbedDefinition, document: Document, **inputs: Any) -> StartedProbe:
        """Publish a probe and submit a run of it."""
        with tenant_scope(subject.tenant):
            published = publish(document)
        run = submit(
            subject.tenant,
            RunRequest(
                blueprint=published.name,
                version=published.number,
                inputs=inputs,
                requested_by=self._requested_by,
            ),
        ).execution
        admit_and_send(bounded=True)
        return StartedProbe(subject=subject, execution_id=run.pk)

    def finish(self, started: StartedProbe) -> ObservedRun:
        """Wait for the run's end, and observe at once what is left of it."""
        subject, execution_id = started.subject, started.execution_id
        run = self._ended(started)
        left = self._watcher.left(execution_id)
        gone_s = self._watcher.gone_s(execution_id)
        with tenant_scope(subject.tenant):
            steps = list(run.steps.order_by("position"))
            recorded = tuple(_observed(record) for record in records(run))
        observed = ObservedRun(
            execution_id=str(execution_id),
            tenant=subject.tenant.schema,
            level=run.isolation,
            state=run.state,
            code=run.code,
            uses=tuple(use for step in steps if (use := _use(step))),
            records=recorded,
            connections=self._watcher.connections(execution_id),
            credentials=self._watcher.credentials(execution_id),
            left=left,
            gone_s=gone_s,
        )
        self.observed.append(observed)
        return observed

    def run(self, subject: ProbedDefinition, document: Document, **inputs: Any) -> ObservedRun:
        """Start a probe and wait for its end."""
        return self.finish(self.start(subject, document, **inputs))

    def _ended(self, started: StartedProbe) -> Execution:
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


def _use(step: Step) -> ObservedUse | None:
    output = step.output
    if not isinstance(output, dict) or "resource_id" not in output:
        return None
    answer = output.get("said") or {}
    connection = next((str(answer[name]) for name in CONNECTION_IDS if name in answer), "")
    return ObservedUse(step=step.path, resource_id=output["resource_id"], connection_id=connection)


def _observed(record: ResourceRecord) -> ObservedRecord:
    lived = record.closed_at - record.opened_at if record.closed_at else None
    return ObservedRecord(
        resource_id=record.resource_id,
        type=record.type,
        step=record.step,
        epoch=record.epoch,
        ended=record.ended,
        seconds=round(lived.total_seconds(), 3) if lived is not None else None,
    )
