"""The records of a run's resources."""

from django.db import models

from executions.models.constraints import null_unless, one_of
from executions.models.execution import Execution
from executions.semantics.record_error import RecordErrorCode, error_text
from executions.semantics.resource_tracker import Disposition

ENDS = [ended.value for ended in Disposition if ended]
ERROR_CODES = [code.value for code in RecordErrorCode if code]


class ResourceRecord(models.Model):
    """One handle or one credential of one run, from first to last; written by executions.transitions alone."""

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
    error_code = models.TextField(
        blank=True, default="", db_default="", help_text="The platform's own reason for the error."
    )
    error = models.TextField(
        blank=True,
        default="",
        help_text="The message of a runtime or remote server, secrets masked.",
    )

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
                condition=one_of("error_code", ['""', *ERROR_CODES]),
                name="resource_record_error_code_known",
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

    @property
    def error_text(self) -> str:
        """The error as people read it; empty if there is none."""
        return error_text(self.error_code, self.error)
