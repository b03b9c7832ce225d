"""How much of the platform a tenant may use at once."""

from django.db import models

from tenants.models.tenant import Tenant
from tenants.rights import DatabaseRights, HasRights


class Quota(HasRights, models.Model):
    """One row per tenant, made with it."""

    database_rights = DatabaseRights(tenant=("SELECT",))

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, primary_key=True)
    max_running = models.PositiveIntegerField(
        default=5, help_text="How many runs may hold a slot at the same time."
    )

    def __str__(self) -> str:
        return f"{self.tenant}: {self.max_running} running"
