"""A person's role in a tenant."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from foundation.errors import InvalidInput
from tenants.models.tenant import Tenant
from tenants.names import check_blueprints
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
    blueprints = models.JSONField(
        null=True,
        blank=True,
        help_text='Limits the member to these blueprints, such as ["billing"]; empty for all.',
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "tenant"), name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"

    def clean(self) -> None:
        """Check the blueprints, for forms."""
        try:
            self.blueprints = check_blueprints(self.blueprints)
        except InvalidInput as error:
            raise ValidationError({"blueprints": error.detail}) from None
