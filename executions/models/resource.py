"""The resources that a run has used."""

from django.db import models

from executions.models.constraints import null_unless, one_of
from executions.models.execution import Execution
from executions.semantics.resource_tracker import Disposition

ENDS = [ended.value for ended in Disposition if ended]


class ResourceRecord(models.Model):
    """One handle or one issued credential of one run, from open to close; written by executions.transitions alone."""

    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="resource_records", db_index=False
    )
    epoch = models.IntegerField()
    resource_id = models.TextField()
    name = models.TextField(help_text="Its name in the blueprint.")
    type = models.TextField()
    definition = models.TextField()
    step = models.TextField(
        blank=True, default="", help_text="The step that opened it; empty if the context did."
    )
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    ended = models.TextField(
        blank=True, default="", help_text="How it ended; empty while it is open."
    )
    error = models.TextField(blank=True, default="", help_text="Secrets masked.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("execution", "resource_id"), name="resource_record_once"
            ),
            models.CheckConstraint(
                condition=one_of("ended", ['""', *ENDS]),
                name="resource_record_ended_known",
            ),
            models.CheckConstraint(
                condition=null_unless("closed_at", "ended", ENDS),
                name="resource_record_closed_when_ended",
            ),
        )
        indexes = (
            models.Index(
                fields=("execution",),
                name="resource_record_open",
                condition=models.Q(closed_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.resource_id} {self.ended or 'open'}"
