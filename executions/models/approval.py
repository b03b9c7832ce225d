"""A question to a person on behalf of a run, and its answer."""

from django.db import models

from executions.models.constraints import one_of
from executions.models.execution import Execution


class ApprovalState(models.TextChoices):
    """The states of a question."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"  # nobody answered in time
    WITHDRAWN = "withdrawn"  # its run ended before


class Approval(models.Model):
    """One question of one run, numbered per run; written by executions.transitions alone.

    It is created when its run is suspended: a run whose context is open cannot be answered.
    """

    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="approvals", db_index=False
    )
    number = models.IntegerField()
    step = models.CharField(max_length=200)
    prompt = models.TextField(help_text="Sensitive values masked.")
    state = models.TextField(choices=ApprovalState.choices, default=ApprovalState.OPEN)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(
        null=True, help_text="Time of the answer, the expiry or the withdrawal."
    )
    answered_by = models.CharField(max_length=200, blank=True, default="")
    comment = models.TextField(blank=True, default="", help_text="Sensitive values masked.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("execution", "number"), name="approval_number_once"),
            models.CheckConstraint(
                condition=one_of("state", ApprovalState.values), name="approval_state_known"
            ),
        )
        indexes = (models.Index(fields=("-asked_at", "id"), name="approval_newest"),)

    def __str__(self) -> str:
        return f"{self.execution_id}/{self.number} {self.state}"
