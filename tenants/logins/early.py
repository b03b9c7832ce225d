"""Refusing addresses that have to wait, before anything else is done for them.

Timing: request-time. Model: sync, in a thread. Guarantee: best-effort; whom it does not know is counted and refused
later, and a key that was valid lately is never refused. Failure: none of its own.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from orchestrator.core.backoff import seconds
from orchestrator.core.errors import TooManyAttempts
from orchestrator.core.problems import problem_response
from tenants.logins.addresses import address_of
from tenants.logins.api_keys import KNOWN, sent_key
from tenants.logins.limits import key_name, password_name
from tenants.logins.pages import too_many_attempts
from tenants.logins.paths import PASSWORD_PATHS, is_for_people
from tenants.logins.waiting import WAITING
from tenants.services.api_keys import digest_of


class EarlyRefusalMiddleware:
    """A thousand wrong tries a second are to cost little more than their answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer 429, or go on."""
        if request.method == "POST" and request.path in PASSWORD_PATHS:
            if wait := WAITING.left(password_name(address_of(request))):
                return too_many_attempts(request, TooManyAttempts(seconds(wait)))
        elif (key := sent_key(request)) and not is_for_people(request.path):
            wait = WAITING.left(key_name(address_of(request)))
            if wait and not KNOWN.has(digest_of(key)):
                return problem_response(TooManyAttempts(seconds(wait)))
        return self._get_response(request)
