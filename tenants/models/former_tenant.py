"""Names of deleted tenants."""

from django.db import models

from tenants.rights import HasRights


class FormerTenant(HasRights, models.Model):
    """The name of a deleted tenant: `env:` and `file:` secrets are found by name, so a new one could read them."""

    schema_name = models.CharField("schema", max_length=41, primary_key=True)
    purged_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.schema_name} until {self.purged_at:%Y-%m-%d}"
