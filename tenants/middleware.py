"""Find the caller of a request and enter its scope: the tenant of host name or API key, or the platform for its admin.

Timing: request-time.
Model: sync, in a thread.
Guarantee: a view runs in exactly one scope: a tenant's, or the login role's, which sees no tenant's data.
Failure: bubble, as a problem.
"""

import logging
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port

from foundation.errors import InvalidInput, IsolaneError, NotFound, TooManyAttempts, Unauthenticated
from foundation.known_caller import tell_caller
from foundation.problems import database_away, problem_response
from tenants.caller import Caller, reach
from tenants.logins.api_keys import caller_of_request, key_in
from tenants.logins.pages import too_many_attempts
from tenants.logins.paths import ADMIN_PREFIX, SIGN_IN_PATHS, is_for_people
from tenants.roles import Role
from tenants.scope import TenantRef, give_back_connection, platform_scope, tenant_scope
from tenants.selectors import membership_of, tenant_by_host
from tenants.services.api_keys import invalid_key
from tenants.statuses import TenantStatus

# The tenant of unknown host names: it has no members and no keys, so such a host looks like any other tenant's.
NO_TENANT = TenantRef(id=0, schema="", status=TenantStatus.ACTIVE)
Handler = Callable[[HttpRequest], HttpResponse]
logger = logging.getLogger(__name__)


class ScopeMiddleware:
    """Set request.caller and enter the scope; runs after authentication, which needs the login role."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response, or a problem."""
        try:
            return self._answer(request)
        except IsolaneError as error:
            return problem_response(error)
        except (OperationalError, InterfaceError) as error:
            # One line: a trace would add nothing to the reason.
            logger.error("the database: %s", error, extra={"event": "DATABASE_AWAY"})  # noqa: TRY400
            return problem_response(database_away())

    def _answer(self, request: HttpRequest) -> HttpResponse:
        host = host_of(request)
        program = None if is_for_people(request.path) else _program(request)
        tenant = None if is_base_host(host) else tenant_by_host(host) or NO_TENANT
        if tenant and request.path.startswith(ADMIN_PREFIX):
            raise NotFound("There is nothing at this address.")
        caller = _caller(request, tenant, program)
        request.caller = caller  # type: ignore[attr-defined]  # ours, read by the API's authentication
        if caller is not None:
            tell_caller(request, f"tenant:{caller.tenant.id}")
        # Signing in uses users and sessions, which no tenant's role may see.
        if caller is not None and request.path not in SIGN_IN_PATHS:
            with tenant_scope(caller.tenant):
                return self._get_response(request)
        if _is_platform_admin(request):
            tell_caller(request, "operators")
            with platform_scope():
                return self._get_response(request)
        if request.path.startswith(ADMIN_PREFIX):
            # The admin reads its user's permissions, which only the platform's role can.
            request.user = AnonymousUser()
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for too many attempts to sign in; Django calls this when a view has raised."""
        if isinstance(exception, TooManyAttempts):
            return too_many_attempts(request.path, exception)
        return None


class ConnectionMiddleware:
    """Give the connection back before the response is sent: a slow reader must not keep it."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response; this is outside of everything that needs a connection."""
        try:
            return self._get_response(request)
        finally:
            give_back_connection()


def host_of(request: HttpRequest) -> str:
    """Return the host name of the request, without its port."""
    try:
        return split_domain_port(request.get_host())[0]
    except DisallowedHost:
        raise InvalidInput("The Host header names no host of this platform.") from None


def is_base_host(host: str) -> bool:
    """Return True for the platform's own host; in the embedded stack also for the loopback address."""
    return host == settings.BASE_HOST or (settings.EMBEDDED and host in {"127.0.0.1", "[::1]"})


def _program(request: HttpRequest) -> Caller | None:
    """Return the caller of the API key, if one was sent."""
    authorization = request.headers.get("Authorization", "")
    if not authorization:
        return None
    key = key_in(authorization)
    if key is None:
        raise Unauthenticated("The Authorization header must be 'Bearer <API key>'.")
    return caller_of_request(request, key)


def _caller(
    request: HttpRequest, tenant: TenantRef | None, program: Caller | None
) -> Caller | None:
    if program is not None:
        if tenant is not None and tenant.id != program.tenant.id:
            # The same error as for an unknown key: it reveals nothing about other tenants.
            raise invalid_key()
        # A program has no user; a session cookie that it sends must not be read in the tenant's scope.
        request.user = AnonymousUser()
        return program
    # Read now, as the login role: a tenant's role may not see users.
    user = request.user
    if tenant is None or not user.is_authenticated:
        return None
    membership = membership_of(user.pk, tenant)
    if membership is None:
        return None
    return Caller(
        tenant=tenant,
        role=Role(membership.role),
        name=f"user:{user.get_username()}",
        blueprints=reach(membership.blueprints),
    )


def _is_platform_admin(request: HttpRequest) -> bool:
    user = request.user
    return request.path.startswith(ADMIN_PREFIX) and user.is_active and user.is_staff
