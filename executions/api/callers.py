"""Who calls an endpoint, and whether a blueprint is within reach."""

from rest_framework.request import Request

from foundation.errors import Forbidden, Unauthenticated
from tenants.api.authentication import caller_of
from tenants.caller import Caller
from tenants.roles import Permission


def caller(request: Request) -> Caller:
    """Who calls; permissions have seen to it that somebody does."""
    found = caller_of(request)
    if found is None:
        raise Unauthenticated("Sign in, or send an API key.")
    return found


def require(who: Caller, permission: Permission, blueprint: str) -> None:
    """Refuse who may not do this with this blueprint, whether or not there is one of that name."""
    if not who.may(permission, blueprint):
        raise Forbidden(
            f"{who.name} lacks {permission} on blueprint {blueprint!r}; ask an admin of the tenant.",
            field="blueprint",
        )
