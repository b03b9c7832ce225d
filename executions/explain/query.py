"""Reading a run's status, with a bounded number of statements whatever happened in the run."""

from django.db.models import Q
from django.utils import timezone

from executions.explain.status import QueueStatus, RunStatus, StepStatus
from executions.models import Execution, Step
from executions.placement.models import Ticket
from executions.states import ExecutionState, StepState, TicketState
from tenants.models import Quota

_STEP_FIELDS = ("path", "state", "attempt", "recovering", "code", "started_at", "retry_at")


def status_of(run: Execution) -> RunStatus:
    """Return the facts; consistent with everything read in the same `selectors.snapshot`."""
    ticket = Ticket.objects.filter(execution_id=run.pk).first()
    return RunStatus(
        at=timezone.now(),
        state=ExecutionState(run.state),
        outcome=run.outcome,
        code=run.code,
        message=run.message,
        question=run.question,
        worker=run.worker,
        wake_at=run.wake_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        step=_step(run),
        queue=_queue(ticket) if ticket and ticket.state == TicketState.WAITING else None,
        cancel_requested=bool(ticket and ticket.cancel_requested),
    )


def _step(run: Execution) -> StepStatus | None:
    steps = Step.objects.filter(execution_id=run.pk).order_by("-position")
    if run.outcome in {ExecutionState.FAILED, ExecutionState.TIMED_OUT}:
        # Earlier steps may have failed without ending the run: find the one with the run's code and message.
        same = Q(code=run.code, message=run.message) | Q(cause=f"recovery: {run.code}")
        steps = steps.filter(same, state=StepState.FAILED)
    else:
        steps = steps.filter(path=run.next_step)
    found = steps.values(*_STEP_FIELDS).first()
    return StepStatus(**{**found, "state": StepState(found["state"])}) if found else None


def _queue(ticket: Ticket) -> QueueStatus:
    placed = Ticket.objects.filter(tenant_id=ticket.tenant_id, state=TicketState.PLACED)
    allowed = Quota.objects.values_list("max_running", flat=True).get(tenant_id=ticket.tenant_id)
    return QueueStatus(since=ticket.waiting_since, held=placed.count(), allowed=allowed)
