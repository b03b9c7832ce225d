"""Events, log lines and costs of a run, in the tenant entered."""

from decimal import Decimal

from django.db.models import QuerySet, Sum

from executions.models import CostRecord, Execution, ExecutionEvent, StepLog


def events(run: Execution, *, after: int = 0) -> QuerySet[ExecutionEvent]:
    """Return the events after the one with this number, the oldest first."""
    return ExecutionEvent.objects.filter(execution_id=run.pk, sequence__gt=after).order_by(
        "sequence"
    )


def logs(run: Execution, *, after: int = 0, step: str = "") -> QuerySet[StepLog]:
    """Return the log lines after the one with this number, of all steps or of one."""
    lines = StepLog.objects.filter(execution_id=run.pk, number__gt=after).order_by("number")
    return lines.filter(step=step) if step else lines


def costs(run: Execution, *, after: int = 0) -> QuerySet[CostRecord]:
    """Return the costs of attempts after the record with this id."""
    return CostRecord.objects.filter(execution_id=run.pk, id__gt=after).order_by("id")


def cost_totals(run: Execution) -> dict[str, Decimal]:
    """Return the exact totals of all attempts by kind."""
    summed = CostRecord.objects.filter(execution_id=run.pk).values("kind").order_by("kind")
    return dict(summed.annotate(total=Sum("amount")).values_list("kind", "total"))
