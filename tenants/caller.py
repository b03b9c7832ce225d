"""Who makes a request, for which tenant, with which right. Pure."""

from dataclasses import dataclass

from tenants.roles import Permission, Role, allows
from tenants.scope import TenantRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """A member or an API key of one tenant."""

    tenant: TenantRef
    role: Role
    name: str  # "user:alice" or "key:isl_abc123"

    def may(self, permission: Permission) -> bool:
        """Say whether the caller has a right."""
        return allows(self.role, permission)
