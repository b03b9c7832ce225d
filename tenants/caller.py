"""The authenticated caller of a request: its tenant, its role and the blueprints within its reach. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from foundation.errors import Forbidden
from tenants.roles import Permission, Role, allows
from tenants.scope import TenantRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """A member or an API key of one tenant."""

    tenant: TenantRef
    role: Role
    name: str  # "user:alice" or "key:isl_abc123"
    blueprints: frozenset[str] | None = None  # within reach; None means all

    def may(self, permission: Permission, blueprint: str | None = None) -> bool:
        """Return True if the caller has the permission, and reaches the blueprint if one is named."""
        return allows(self.role, permission) and (blueprint is None or self._reaches(blueprint))

    def require(self, permission: Permission, blueprint: str | None = None) -> None:
        """Raise Forbidden unless the caller has the permission; the blueprint need not exist."""
        if self.may(permission, blueprint):
            return
        if blueprint is None:
            raise Forbidden(f"{self.name} lacks {permission}; ask an admin of the tenant.")
        raise Forbidden(
            f"{self.name} lacks {permission} on blueprint {blueprint!r}; ask an admin of the tenant.",
            field="blueprint",
        )

    def require_tenant_wide(self, permission: Permission) -> None:
        """Raise Forbidden unless the caller has the permission for all blueprints of the tenant."""
        self.require(permission)
        if self.blueprints is not None:
            raise Forbidden(
                f"{self.name} is limited to some blueprints, and resources and secrets belong to all of the tenant;"
                " ask an admin of the tenant."
            )

    def _reaches(self, blueprint: str) -> bool:
        return self.blueprints is None or blueprint in self.blueprints


def reach(blueprints: Collection[str] | None) -> frozenset[str] | None:
    """Convert a stored list of blueprint names to a caller's reach; an empty list reaches nothing."""
    return None if blueprints is None else frozenset(blueprints)
