"""The nodes that a runtime environment offers, as its runner described them."""

from django.db import models

from tenants.rights import DatabaseRights, HasRights


class Catalogue(HasRights, models.Model):
    """Immutable nodes; the version is the hash of the content. Web and workers read it and never import step code."""

    database_rights = DatabaseRights(
        tenant=("SELECT",), worker=("SELECT", "INSERT", "UPDATE (offered_at)")
    )

    version = models.CharField(max_length=64, primary_key=True)
    nodes = models.JSONField()
    packages = models.JSONField()
    offered_at = models.DateTimeField(
        help_text="When a living worker last offered it, to the minute."
    )

    def __str__(self) -> str:
        return self.version[:12]
