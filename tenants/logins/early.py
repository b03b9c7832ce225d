"""Refusals in front of Django for callers that have to wait: they use no thread, no session and no server.

Timing: request-time.
Model: async; waits for a form's body and for the answer to be sent.
Guarantee: best-effort; unknown callers are counted and refused behind it, a recently valid key never is.
Failure: abort; a caller that disconnects before its form is complete gets no answer.
"""

from django.http import HttpResponse

from foundation.backoff import CountedSubject, seconds
from foundation.errors import IsolaneError, TooLarge, TooManyAttempts
from foundation.failure_counts import FailureCounts
from foundation.problems import problem_response
from tenants.logins.addresses import counted_address, is_shared_by_all
from tenants.logins.api_keys import KNOWN, key_in
from tenants.logins.asgi import (
    Application,
    Receive,
    Scope,
    Send,
    again,
    header,
    send_response,
    whole_body,
    with_headers,
)
from tenants.logins.hashing import AT_ONCE, RETRY_SECONDS
from tenants.logins.hashing import WAITING as QUEUED
from tenants.logins.limits import address_subject, key_subject
from tenants.logins.pages import too_many_attempts
from tenants.logins.paths import PASSWORD_PATHS, is_for_people
from tenants.logins.waiting import WAITING
from tenants.services.api_keys import digest_of

MAX_FORM_BYTES = 64 * 1024


class EarlyRefusals:
    """Wraps Django's application. Lets in as many logins at once as can hash or wait for it."""

    def __init__(
        self,
        application: Application,
        *,
        most: int = AT_ONCE + QUEUED,
        turned_away: FailureCounts | None = None,
    ) -> None:
        self._application = application
        self._free = most
        self._turned_away = turned_away or FailureCounts()

    def refusal(self, scope: Scope) -> HttpResponse | None:
        """Return the answer to an address that has to wait, by the header alone: the body has not come yet."""
        if _signs_in(scope):
            subject = _subject(scope)
            wait = WAITING.left(subject.name) or self._turned_away.wait(subject)
        else:
            wait = _wait_of_key(scope)
        if not wait:
            return None
        error = TooManyAttempts(seconds(wait))
        return with_headers(scope, _response(scope["path"], error))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 429, or pass the request on."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif response := self.refusal(scope):
            await send_response(send, response)
        elif _signs_in(scope):
            await self._sign_in(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _sign_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Read the whole form first: one that comes slowly must not keep others out.
        body = await whole_body(receive, most=MAX_FORM_BYTES)
        if body is None:
            return
        if len(body) > MAX_FORM_BYTES:
            await _refuse(
                scope,
                send,
                TooLarge(f"The form is too large; send at most {MAX_FORM_BYTES} bytes."),
            )
            return
        if not self._free:
            self._turned_away.count([_subject(scope)])  # repeated tries make the address wait
            await _refuse(scope, send, TooManyAttempts(RETRY_SECONDS))
            return
        self._free -= 1
        try:
            await self._application(scope, again(body, receive), send)
        finally:
            self._free += 1


def _signs_in(scope: Scope) -> bool:
    return scope["method"].upper() == "POST" and scope["path"] in PASSWORD_PATHS


def _subject(scope: Scope) -> CountedSubject:
    return address_subject(_address(scope), is_proxy=is_shared_by_all())


def _wait_of_key(scope: Scope) -> int:
    if WAITING.is_empty or is_for_people(scope["path"]):
        return 0
    key = key_in(header(scope, b"authorization"))
    if not key:
        return 0
    wait = WAITING.left(key_subject(_address(scope), is_proxy=is_shared_by_all()).name)
    return 0 if wait and KNOWN.has(digest_of(key)) else wait


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return counted_address(client[0] if client else "", header(scope, b"x-forwarded-for"))


async def _refuse(scope: Scope, send: Send, error: IsolaneError) -> None:
    await send_response(send, with_headers(scope, _response(scope["path"], error)))


def _response(path: str, error: IsolaneError) -> HttpResponse:
    """Return Django's own answer: a page for people, a problem for programs."""
    if isinstance(error, TooManyAttempts) and is_for_people(path):
        return too_many_attempts(path, error)
    return problem_response(error)
