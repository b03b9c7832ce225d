"""Who types a command about what belongs to all of a tenant, not to a blueprint."""

from orchestrator.cli.support.identity import Viewer
from resources.api.callers import require_tenant_wide
from tenants.roles import Permission


class Owner(Viewer):
    """A caller of the tenant if an API key was given, with its rights; else an operator of the platform."""

    def require_change(self, permission: Permission) -> None:
        """Refuse a caller who may not change it."""
        if self._caller is not None:
            require_tenant_wide(self._caller, permission)
