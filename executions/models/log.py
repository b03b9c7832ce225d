"""Log lines of steps."""

from django.db import models

from executions.models.execution import Execution


class StepLog(models.Model):
    """One line, numbered per execution; capped per attempt, sensitive values masked. Partitioned like events."""

    pk = models.CompositePrimaryKey("execution_id", "number", "at")
    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="logs")
    number = models.IntegerField()
    at = models.DateTimeField()
    step = models.CharField(max_length=200)
    attempt = models.IntegerField()
    level = models.CharField(max_length=8)
    message = models.TextField()

    def __str__(self) -> str:
        return self.message
