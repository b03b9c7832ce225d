"""Costs of steps."""

from django.db import models

from executions.models.execution import Execution


class CostRecord(models.Model):
    """The cost of one kind that one attempt reported; written with its checkpoint, so exactly once."""

    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="cost_records", db_index=False
    )
    step = models.CharField(max_length=200)
    attempt = models.IntegerField()
    kind = models.CharField(max_length=40)
    amount = models.DecimalField(max_digits=30, decimal_places=6)
    at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("execution", "step", "attempt", "kind"), name="cost_once_per_attempt"
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount} {self.kind}"


class MonthlyCost(models.Model):
    """The costs of the tenant's runs in a calendar month (UTC), by kind; compared with its budget."""

    month = models.DateField()
    kind = models.CharField(max_length=40)
    amount = models.DecimalField(max_digits=30, decimal_places=6)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("month", "kind"), name="monthly_cost_once"),)

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: {self.amount} {self.kind}"
