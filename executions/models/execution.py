"""One run of one blueprint version."""

import uuid

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Value

from executions.models.blueprint import BlueprintVersion
from executions.models.constraints import null_unless, one_of
from executions.states import TERMINAL_EXECUTION, ExecutionState


class Execution(models.Model):
    """A request and its current state; written by executions.transitions alone."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    blueprint_version = models.ForeignKey(
        BlueprintVersion, on_delete=models.PROTECT, related_name="executions"
    )
    state = models.TextField(choices=ExecutionState.choices, default=ExecutionState.QUEUED)
    # The state in which the run will end, set by its last checkpoint; the state follows once its context is closed.
    outcome = models.TextField(blank=True, default="")
    code = models.CharField(max_length=40, blank=True, default="")
    message = models.TextField(blank=True, default="")
    # Sensitive values are masked here; the whole is sealed beside it.
    inputs = models.JSONField(default=dict)
    sealed_inputs = models.BinaryField(null=True)
    variables = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    sealed_variables = models.BinaryField(null=True)
    outputs = models.JSONField(
        null=True, help_text="The resolved outputs; sensitive values masked."
    )
    labels = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    costs = models.JSONField(
        default=dict,
        db_default=Value({}, models.JSONField()),
        help_text="Costs of all attempts, by kind.",
    )
    seed = models.BigIntegerField()
    express = models.BooleanField(default=False, db_default=False)
    isolation = models.CharField(max_length=16)
    isolation_reason = models.CharField(max_length=200)
    catalogue = models.CharField(
        max_length=64, help_text="The version of the node catalogue it is bound to."
    )
    # The checkpoint's optimistic version, and the step that comes next.
    version = models.IntegerField(default=0)
    next_step = models.CharField(max_length=200, blank=True, default="")
    last_event = models.IntegerField(default=0, help_text="The number of the newest event.")
    last_log = models.IntegerField(
        default=0, db_default=0, help_text="The number of the newest log line."
    )
    announced_epoch = models.IntegerField(
        default=0, db_default=0, help_text="The newest placement that its events name."
    )
    wake_at = models.DateTimeField(null=True, help_text="End of its wait without a slot.")
    question = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="Question to a person, open until `wake_at`.",
    )
    cpu_seconds = models.FloatField(
        default=0,
        db_default=0,
        help_text="Processor time that its runtimes have used, of all placements that ended in order.",
    )
    peak_ram_mb = models.FloatField(
        default=0,
        db_default=0,
        help_text="Most RAM in MiB that one of these runtimes has used at a time.",
    )
    losses = models.IntegerField(
        default=0, help_text="Placements lost in a row without a checkpoint between them."
    )
    requested_by = models.CharField(max_length=200)
    request_id = models.CharField(max_length=64, default="", db_default="", blank=True)
    # The key it was submitted with, the blueprint of that key, and the hash of the request.
    idempotency_key = models.CharField(max_length=200, default="", db_default="", blank=True)
    key_blueprint = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="The blueprint in which its key is unique, if it has one.",
    )
    request_hash = models.CharField(max_length=64, default="", db_default="", blank=True)
    replay_of = models.UUIDField(
        null=True, help_text="The run whose seed and inputs it repeats, to compare."
    )
    worker = models.CharField(
        max_length=200, blank=True, default="", help_text="The worker it ran on last."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("key_blueprint", "idempotency_key"),
                condition=~models.Q(idempotency_key=""),
                name="execution_key_once",
            ),
            models.CheckConstraint(
                condition=one_of("state", ExecutionState.values), name="execution_state_known"
            ),
            models.CheckConstraint(
                condition=one_of("outcome", ['""', *sorted(TERMINAL_EXECUTION)]),
                name="execution_outcome_known",
            ),
            models.CheckConstraint(
                condition=null_unless("finished_at", "state", sorted(TERMINAL_EXECUTION)),
                name="execution_finished_when_terminal",
            ),
        )
        indexes = (
            models.Index(fields=("-created_at", "id"), name="execution_newest"),
            GinIndex(
                fields=("labels",),
                opclasses=("jsonb_path_ops",),
                condition=~models.Q(labels={}),  # most runs have none
                name="execution_labels",
            ),
        )

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """The id in API, CLI and logs."""
        return f"exec_{self.id}"
