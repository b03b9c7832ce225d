"""Wake-ups and expiries, each due at a time."""

from django.db import models

from tenants.models import Tenant
from tenants.rights import DatabaseRights, HasRights


class DueKind(models.TextChoices):
    """The kinds of things that become due."""

    WAKE = "wake"  # a parked run goes on; the ref is its id
    APPROVAL = "approval"  # the question of a suspended run expires; the ref is the run's id


class Due(HasRights, models.Model):
    """A row for each run that waits, deleted when the run is woken; the tick reads the earliest ones."""

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
