"""The table of the hand-written durable chain: one row per step."""

from typing import ClassVar

from django.db import models


class Step(models.Model):
    """The progress of one step; a run is over when its last step is done."""

    class State(models.TextChoices):
        """States; only the task writes them."""

        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"

    run_id = models.UUIDField()
    position = models.PositiveIntegerField()
    is_last = models.BooleanField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Declared for mypy: its plugin knows only the platform's own apps.
    objects: ClassVar["models.Manager[Step]"] = models.Manager()

    class Meta:
        app_label = "durable"
        constraints = (
            models.UniqueConstraint(fields=("run_id", "position"), name="one_step_per_position"),
        )
