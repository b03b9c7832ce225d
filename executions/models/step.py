"""One node of the blueprint within one execution; its row is its checkpoint."""

from django.db import models

from executions.models.constraints import one_of
from executions.models.execution import Execution
from executions.states import StepState


class Step(models.Model):
    """One step; written by executions.transitions alone."""

    # An index of its own would repeat the beginning of step_path_once.
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    position = models.IntegerField()
    path = models.CharField(max_length=200)
    uses = models.CharField(max_length=200)
    state = models.TextField(choices=StepState.choices, default=StepState.PENDING)
    attempt = models.IntegerField(default=0)
    epoch = models.IntegerField(default=0, help_text="The placement that claimed it last.")
    inputs = models.JSONField(
        null=True, help_text="The parameters of its last attempt; sensitive values masked."
    )
    # Sensitive values are masked here; the whole is sealed beside it.
    output = models.JSONField(null=True)
    sealed_output = models.BinaryField(null=True)
    code = models.CharField(max_length=40, blank=True, default="")
    message = models.TextField(blank=True, default="")
    cause = models.TextField(blank=True, default="")
    retry_at = models.DateTimeField(null=True, help_text="Earliest time of the next attempt.")
    recovering = models.BooleanField(
        default=False, db_default=False, help_text="The next attempt runs its recovery node."
    )
    # Shows after a lost connection whether the checkpoint was written.
    token = models.UUIDField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("execution", "position")
        constraints = (
            models.UniqueConstraint(fields=("execution", "path"), name="step_path_once"),
            models.UniqueConstraint(fields=("execution", "position"), name="step_position_once"),
            models.CheckConstraint(
                condition=one_of("state", StepState.values), name="step_state_known"
            ),
        )

    def __str__(self) -> str:
        return self.path
