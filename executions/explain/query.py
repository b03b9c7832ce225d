"""Reading a run's status, with a bounded number of statements whatever happened in the run."""

from django.utils import timezone

from executions.explain.status import QueueStatus, RunStatus, StepStatus
from executions.models import Execution, ExecutionEvent, Step
from executions.placement.models import Ticket
from executions.states import TERMINAL_STEP, ExecutionState, StepState, TicketState
from tenants.models import Quota

_STEP_FAILED = f"step.{StepState.FAILED.value}"
_STEP_ENDS = [f"step.{state.value}" for state in sorted(TERMINAL_STEP)]
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
        isolation=run.isolation,
        isolation_reason=run.isolation_reason,
        cpu_seconds=run.cpu_seconds,
        peak_ram_mb=run.peak_ram_mb,
        cancel_requested=bool(ticket and ticket.cancel_requested),
    )


def _step(run: Execution) -> StepStatus | None:
    failed = run.outcome in {ExecutionState.FAILED, ExecutionState.TIMED_OUT}
    path = _last_failure(run) if failed else run.next_step
    steps = Step.objects.filter(execution_id=run.pk, path=path)
    found = steps.values(*_STEP_FIELDS).first()
    return StepStatus(**{**found, "state": StepState(found["state"])}) if found else None


def _last_failure(run: Execution) -> str:
    """Return the step that ended the run: the one of its last step event, if that is a failure.

    Others may have failed before, and the run went on; or the run failed after its last step, by its outputs.
    """
    last = (
        ExecutionEvent.objects.filter(execution_id=run.pk, kind__in=_STEP_ENDS)
        .order_by("-sequence")
        .values_list("kind", "step")
        .first()
    )
    return last[1] if last and last[0] == _STEP_FAILED else ""


def _queue(ticket: Ticket) -> QueueStatus:
    placed = Ticket.objects.filter(tenant_id=ticket.tenant_id, state=TicketState.PLACED)
    allowed = Quota.objects.values_list("max_running", flat=True).get(tenant_id=ticket.tenant_id)
    return QueueStatus(since=ticket.waiting_since, held=placed.count(), allowed=allowed)
