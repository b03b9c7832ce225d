"""What is to happen at a time."""

from django.db import models

from tenants.models import Tenant
from tenants.rights import DatabaseRights, HasRights


class DueKind(models.TextChoices):
    """What happens then."""

    WAKE = "wake"  # a parked run goes on; the ref is its id
    APPROVAL = "approval"  # the question of a suspended run expires; the ref is the run's id


class Due(HasRights, models.Model):
    """Written with what waits, deleted with what happens; the tick looks at the earliest ones."""

    database_rights = DatabaseRights(
        tenant=("SELECT", "INSERT", "UPDATE", "DELETE"), worker=("SELECT", "UPDATE")
    )

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="due")
    kind = models.TextField(choices=DueKind.choices)
    ref = models.UUIDField()
    at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("kind", "ref"), name="due_once"),)
        indexes = (models.Index(fields=("at",), name="due_by_time"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.ref} at {self.at}"
