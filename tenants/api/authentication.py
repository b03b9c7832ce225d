"""DRF's view of who calls; the middleware has found out."""

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
        """A program has no user; what it may do is the key's."""
        caller = caller_of(request)
        return (AnonymousUser(), caller) if caller and caller.name.startswith("key:") else None

    def authenticate_header(self, request: Request) -> str:
        """Make DRF answer 401, not 403, when nobody is authenticated."""
        return 'Bearer realm="isolane"'


class MemberSessionAuthentication(SessionAuthentication):
    """A signed-in member on the tenant's own host; checks the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """Only members of the host's tenant count."""
        return super().authenticate(request) if caller_of(request) else None

    def enforce_csrf(self, request: Request) -> None:
        """Refuse with the same problem as outside of the API."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied:
            raise csrf_failed() from None


def caller_of(request: Request) -> Caller | None:
    """Who calls, as found by ScopeMiddleware."""
    return getattr(request._request, "caller", None)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """How the OpenAPI document names it."""

    target_class = "tenants.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """An HTTP bearer token."""
        return {"type": "http", "scheme": "bearer", "description": "An API key of the tenant."}


class MemberSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """How the OpenAPI document names it."""

    target_class = "tenants.api.authentication.MemberSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The cookie of a signed-in member."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
