"""A credential for programs: bound to one tenant, stored as a digest only."""

from django.db import models

from tenants.models.tenant import Tenant
from tenants.rights import DatabaseRights, HasRights
from tenants.roles import Role


class ApiKey(HasRights, models.Model):
    """The secret itself is shown once, when it is made."""

    database_rights = DatabaseRights(login=("SELECT",))

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    # 256 random bits need no slow hash; the digest is looked up by its unique index.
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(
        max_length=16, help_text="The key's first characters, to tell keys apart."
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.OPERATOR)
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
