"""A credential that was issued to one placement at a remote server."""

from django.db import models

from tenants.models import Tenant
from tenants.rights import DatabaseRights, HasRights


class IssuedCredential(HasRights, models.Model):
    """Committed before the credential is made, deleted after it was revoked: the sweeper finds whatever died between.

    The epoch is part of the credential's name: a late close of an old placement cannot touch the new one.
    """

    database_rights = DatabaseRights(
        tenant=("SELECT", "INSERT", "UPDATE", "DELETE"), worker=("SELECT", "DELETE")
    )

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="issued_credentials", db_index=False
    )
    execution_id = models.UUIDField()
    epoch = models.PositiveIntegerField()
    resource_type = models.TextField()
    definition = models.TextField()
    kind = models.TextField(help_text="Such as database.role or cache.user.")
    remote_id = models.TextField(help_text="Its name at the remote server.")
    data = models.BinaryField(help_text="The login and names needed to revoke it, encrypted.")
    issued_at = models.DateTimeField()
    sweep_at = models.DateTimeField(help_text="The sweeper skips it until then.")
    sweeps = models.PositiveIntegerField(default=0, help_text="Failed attempts to revoke it.")
    swept = models.BooleanField(
        default=False, help_text="Revoked by the sweeper, which revokes it once more later."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("execution_id", "epoch", "kind", "remote_id"), name="issued_once"
            ),
        )
        indexes = (models.Index(fields=("sweep_at",), name="issued_by_sweep"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.remote_id}"
