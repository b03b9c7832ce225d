"""The caller of an API request."""

from rest_framework.request import Request

from foundation.errors import Unauthenticated
from tenants.caller import Caller


def caller(request: Request) -> Caller:
    """Return the authenticated caller, or raise Unauthenticated."""
    found = authenticated_caller(request)
    if found is None:
        raise Unauthenticated("Sign in, or send an API key.")
    return found


def authenticated_caller(request: Request) -> Caller | None:
    """Return the caller that an authentication class has set, or None."""
    return request.auth if isinstance(request.auth, Caller) else None
