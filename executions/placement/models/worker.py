"""One boot of one worker process."""

import uuid

from django.db import models

from executions.placement.models.catalogue import Catalogue
from tenants.rights import DatabaseRights, HasRights


class Worker(HasRights, models.Model):
    """A boot of a worker; alive until its lease lapses, by the database's clock."""

    database_rights = DatabaseRights(worker=("SELECT", "INSERT", "UPDATE", "DELETE"))

    boot = models.UUIDField(primary_key=True, default=uuid.uuid4)
    node_name = models.CharField(max_length=200)
    lane = models.CharField(max_length=200, unique=True)
    capacity = models.PositiveIntegerField()
    isolation_levels = models.JSONField(default=list)
    catalogue = models.ForeignKey(Catalogue, on_delete=models.PROTECT, related_name="workers")
    started_at = models.DateTimeField(auto_now_add=True)
    lease_until = models.DateTimeField()
    draining = models.BooleanField(default=False)
    reachable = models.BooleanField(
        default=True, db_default=True, help_text="Messages sent to its lane arrive."
    )

    class Meta:
        indexes = (models.Index(fields=("lease_until",), name="worker_by_lease"),)

    def __str__(self) -> str:
        return self.node_name
