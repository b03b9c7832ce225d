"""Collect what the platform stored about all runs.

Timing: once at the end, some seconds.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble.
"""

from collections.abc import Sequence

from executions.models import Execution, ExecutionEvent, Step
from tenants.scope import TenantRef, tenant_scope
from trials.chaos.rows import EventRow, RunRow, StepRow


def runs(tenants: Sequence[TenantRef]) -> list[RunRow]:
    """Return all runs."""
    found: list[RunRow] = []
    for tenant in tenants:
        with tenant_scope(tenant):
            rows = Execution.objects.select_related("blueprint_version__blueprint")
            found += [
                RunRow(
                    id=row.pk,
                    tenant=tenant.schema,
                    blueprint=row.blueprint_version.blueprint.name,
                    state=row.state,
                    code=row.code,
                    last_event=row.last_event,
                )
                for row in rows
            ]
    return found


def steps(tenants: Sequence[TenantRef]) -> list[StepRow]:
    """Return all steps, in order."""
    found: list[StepRow] = []
    for tenant in tenants:
        with tenant_scope(tenant):
            found += [
                StepRow(
                    execution=row.execution_id,
                    path=row.path,
                    state=row.state,
                    code=row.code,
                    message=row.message,
                    cause=row.cause,
                    attempt=row.attempt,
                    epoch=row.epoch,
                    finished_at=row.finished_at,
                )
                for row in Step.objects.order_by("execution_id", "position")
            ]
    return found


def events(tenants: Sequence[TenantRef]) -> list[EventRow]:
    """Return all events, in order."""
    found: list[EventRow] = []
    for tenant in tenants:
        with tenant_scope(tenant):
            found += [
                EventRow(
                    execution=row.execution_id,
                    sequence=row.sequence,
                    kind=row.kind,
                    step=row.step,
                    data=row.data,
                )
                for row in ExecutionEvent.objects.order_by("execution_id", "sequence")
            ]
    return found
