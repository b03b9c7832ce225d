"""The row by which an execution waits, is placed, is fenced and is cancelled."""

from django.db import models

from executions.placement.models.catalogue import Catalogue
from executions.placement.models.worker import Worker
from executions.states import TicketState
from tenants.models import Tenant
from tenants.rights import DatabaseRights, HasRights


class Ticket(HasRights, models.Model):
    """A run's place in the queue, until the run is terminal; a placed ticket holds a slot, no other does.

    (execution, epoch, worker) is the fence: claim and checkpoint lock this row FOR SHARE in their own statement, and
    the statement that ends a placement raises the epoch or deletes the row.
    """

    database_rights = DatabaseRights(
        tenant=("SELECT", "INSERT", "UPDATE", "DELETE"),
        worker=("SELECT", "UPDATE", "DELETE"),
        worker_sequences=("placement_dirty",),
    )

    execution_id = models.UUIDField(primary_key=True)
    # The two partial indexes below serve all frequent queries; one more would be one more write for every run.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="tickets", db_index=False
    )
    state = models.CharField(
        max_length=16, choices=TicketState.choices, default=TicketState.WAITING
    )
    epoch = models.PositiveIntegerField(default=1)
    worker = models.ForeignKey(
        Worker, on_delete=models.PROTECT, null=True, related_name="tickets", db_index=False
    )
    isolation = models.CharField(max_length=16)
    catalogue = models.ForeignKey(
        Catalogue, on_delete=models.PROTECT, related_name="tickets", db_index=False
    )
    cancel_requested = models.BooleanField(default=False)
    waiting_since = models.DateTimeField()
    time_left = models.FloatField(
        default=1800, db_default=1800, help_text="Seconds for which its run may still hold a slot."
    )
    deadline = models.DateTimeField(
        null=True, help_text="When these are used up; known while it is placed."
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=TicketState.values), name="ticket_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state=TicketState.PLACED) ^ models.Q(worker__isnull=True),
                name="ticket_has_worker_when_placed",
            ),
        )
        indexes = (
            models.Index(
                fields=("tenant", "waiting_since"),
                name="ticket_waiting",
                condition=models.Q(state=TicketState.WAITING),
            ),
            models.Index(
                fields=("worker", "tenant"),
                name="ticket_placed",
                condition=models.Q(state=TicketState.PLACED),
            ),
        )

    def __str__(self) -> str:
        return f"{self.execution_id} {self.state}"
