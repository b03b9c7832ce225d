"""What was issued to one placement at a far side."""

from django.db import models

from tenants.models import Tenant
from tenants.rights import DatabaseRights, HasRights


class Issued(HasRights, models.Model):
    """Committed before the thing is made, deleted after it was revoked: whatever dies in between, the sweeper finds it.

    The epoch is part of the thing's name: a late close of an old placement cannot touch the new one.
    """

    database_rights = DatabaseRights(
        tenant=("SELECT", "INSERT", "UPDATE", "DELETE"), worker=("SELECT", "DELETE")
    )

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="issued", db_index=False
    )
    execution_id = models.UUIDField()
    epoch = models.PositiveIntegerField()
    resource_type = models.TextField()
    definition = models.TextField()
    kind = models.TextField()
    far_id = models.TextField()
    data = models.BinaryField(help_text="What it takes to revoke it, encrypted.")
    issued_at = models.DateTimeField()
    sweep_at = models.DateTimeField(help_text="Not looked at by the sweeper before.")
    sweeps = models.PositiveIntegerField(default=0, help_text="How often it could not be revoked.")
    swept = models.BooleanField(
        default=False, help_text="Revoked by the sweeper, which looks once more later."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("execution_id", "epoch", "kind", "far_id"), name="issued_once"
            ),
        )
        indexes = (models.Index(fields=("sweep_at",), name="issued_by_sweep"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.far_id}"
