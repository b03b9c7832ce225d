"""A person's part in a tenant."""

from django.conf import settings
from django.db import models

from tenants.models.tenant import Tenant
from tenants.rights import DatabaseRights, HasRights
from tenants.roles import Role


class Membership(HasRights, models.Model):
    """One role per person and tenant."""

    database_rights = DatabaseRights(login=("SELECT",))

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "tenant"), name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"
