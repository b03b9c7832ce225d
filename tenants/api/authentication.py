"""DRF authentication: `request.auth` is the Caller that ScopeMiddleware has found."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from foundation.problems import csrf_failed
from tenants.caller import Caller


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer isl_…`."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Caller] | None:
        """Return an anonymous user and the key's caller; None if no key was sent."""
        caller = _found_by_middleware(request)
        return (AnonymousUser(), caller) if caller and caller.name.startswith("key:") else None

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge; with one, DRF answers 401 instead of 403."""
        return 'Bearer realm="isolane"'


class MemberSessionAuthentication(SessionAuthentication):
    """A signed-in member on the tenant's own host; checks the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        """Return the user and its caller; None unless the user is a member of the host's tenant."""
        caller = _found_by_middleware(request)
        authenticated = super().authenticate(request) if caller else None
        return (authenticated[0], caller) if authenticated and caller else None

    def enforce_csrf(self, request: Request) -> None:
        """Raise the same CSRF problem as outside the API."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied:
            raise csrf_failed() from None


def _found_by_middleware(request: Request) -> Caller | None:
    caller: Caller | None = getattr(request._request, "caller", None)
    return caller


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """API keys in the OpenAPI document."""

    target_class = "tenants.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return an HTTP bearer scheme."""
        return {"type": "http", "scheme": "bearer", "description": "An API key of the tenant."}


class MemberSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Session cookies in the OpenAPI document."""

    target_class = "tenants.api.authentication.MemberSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the session cookie of a signed-in member."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
