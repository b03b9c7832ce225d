"""A credential for programs: bound to one tenant, stored as a digest only."""

from django.core.exceptions import ValidationError
from django.db import models

from foundation.errors import InvalidInput
from tenants.models.tenant import Tenant
from tenants.names import check_blueprints
from tenants.rights import DatabaseRights, HasRights
from tenants.roles import Role


class ApiKey(HasRights, models.Model):
    """A key; the secret itself is shown once, when it is created."""

    database_rights = DatabaseRights(login=("SELECT",))

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    # 256 random bits need no slow hash; the digest is looked up by its unique index.
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(
        max_length=16, help_text="The key's first characters, to tell keys apart."
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.OPERATOR)
    blueprints = models.JSONField(
        null=True,
        blank=True,
        help_text='Limits the key to these blueprints, such as ["billing"]; empty for all.',
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="api_key_role_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    def clean(self) -> None:
        """Check the blueprints, for forms."""
        try:
            self.blueprints = check_blueprints(self.blueprints)
        except InvalidInput as error:
            raise ValidationError({"blueprints": error.detail}) from None
