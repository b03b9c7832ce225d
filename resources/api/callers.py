"""Who calls, and whether they may change what belongs to the whole tenant."""

from rest_framework.request import Request

from foundation.errors import Forbidden, Unauthenticated
from tenants.api.authentication import caller_of
from tenants.caller import Caller
from tenants.roles import Permission


def editor(request: Request, permission: Permission) -> Caller:
    """Who calls, if they may change what every blueprint of the tenant may use."""
    found = caller_of(request)
    if found is None:
        raise Unauthenticated("Sign in, or send an API key.")
    require_tenant_wide(found, permission)
    return found


def require_tenant_wide(who: Caller, permission: Permission) -> None:
    """Refuse who lacks the right, or is limited to some blueprints: a change would reach the others, too."""
    if not who.may(permission):
        raise Forbidden(f"{who.name} lacks {permission}; ask an admin of the tenant.")
    if who.blueprints is not None:
        raise Forbidden(
            f"{who.name} is limited to some blueprints, and resources and secrets belong to all of the tenant;"
            " ask an admin of the tenant."
        )
