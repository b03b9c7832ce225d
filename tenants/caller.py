"""Who makes a request, for which tenant, with which right. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from tenants.roles import Permission, Role, allows
from tenants.scope import TenantRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """A member or an API key of one tenant."""

    tenant: TenantRef
    role: Role
    name: str  # "user:alice" or "key:isl_abc123"
    blueprints: frozenset[str] | None = None  # all, unless some are named

    def may(self, permission: Permission, blueprint: str | None = None) -> bool:
        """Say whether the caller has a right; of a blueprint's things, name the blueprint."""
        return allows(self.role, permission) and (blueprint is None or self._reaches(blueprint))

    def _reaches(self, blueprint: str) -> bool:
        return self.blueprints is None or blueprint in self.blueprints


def reach(blueprints: Collection[str] | None) -> frozenset[str] | None:
    """What a membership or a key stores, as a caller carries it; an empty list reaches nothing."""
    return None if blueprints is None else frozenset(blueprints)
