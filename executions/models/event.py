"""The events of an execution, in order."""

from django.db import models

from executions.models.execution import Execution


class ExecutionEvent(models.Model):
    """One event. Append-only, numbered per execution. Partitioned by time: old partitions are dropped, not deleted."""

    pk = models.CompositePrimaryKey("execution_id", "sequence", "at")
    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="events")
    sequence = models.IntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=60)
    step = models.CharField(max_length=200, blank=True, default="")
    data = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.sequence} {self.kind}"
