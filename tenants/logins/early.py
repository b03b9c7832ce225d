"""Refusing addresses that have to wait in front of Django: no thread, no session, no server is used for them.

Timing: request-time. Model: async; it waits for nothing but the answer's way out. Guarantee: best-effort; whom it does
not know is counted and refused behind it, and a key that was valid lately is never refused. Failure: none of its own.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from django.http import HttpRequest

from orchestrator.core.backoff import seconds
from orchestrator.core.browser_rules import BrowserRulesMiddleware
from orchestrator.core.errors import TooManyAttempts
from orchestrator.core.problems import problem_response
from orchestrator.core.request_ids import HEADER, usable_id
from tenants.logins.addresses import counted_address
from tenants.logins.api_keys import KNOWN, key_in
from tenants.logins.hashing import QUEUE, RETRY_SECONDS
from tenants.logins.limits import key_name, password_name
from tenants.logins.pages import too_many_attempts
from tenants.logins.paths import PASSWORD_PATHS, is_for_people
from tenants.logins.waiting import WAITING
from tenants.services.api_keys import digest_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]


class EarlyRefusals:
    """Around Django's application."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer 429, or go on."""
        wait = seconds_to_wait(scope) if scope["type"] == "http" else 0
        if not wait:
            await self._application(scope, receive, send)
            return
        status, headers, body = _answer(scope["path"] if is_for_people(scope["path"]) else "", wait)
        sent_id = (HEADER.encode(), usable_id(_header(scope, b"x-request-id")).encode())
        await send(
            {"type": "http.response.start", "status": status, "headers": [*headers, sent_id]}
        )
        await send({"type": "http.response.body", "body": body})


def seconds_to_wait(scope: Message) -> int:
    """How long the caller has to wait, as far as is known here; 0 if Django is to find out."""
    if scope["method"] == "POST" and scope["path"] in PASSWORD_PATHS:
        if QUEUE.is_full:
            return RETRY_SECONDS
        wait = 0 if WAITING.is_empty else WAITING.left(password_name(_address(scope)))
    elif WAITING.is_empty or is_for_people(scope["path"]):
        return 0
    else:
        key = key_in(_header(scope, b"authorization"))
        wait = WAITING.left(key_name(_address(scope))) if key else 0
        if wait and key and KNOWN.has(digest_of(key)):
            return 0
    return seconds(wait) if wait else 0


@lru_cache(maxsize=1_000)
def _answer(page: str, wait: int) -> tuple[int, Headers, bytes]:
    """What Django would have answered: a page with a link to that path, or a problem for programs."""
    request, error = HttpRequest(), TooManyAttempts(wait)
    request.path = page
    response = too_many_attempts(request, error) if page else problem_response(error)
    response = BrowserRulesMiddleware(lambda _: response)(request)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Length"] = str(len(response.content))
    headers = tuple((name.encode(), value.encode()) for name, value in response.items())
    return response.status_code, headers, response.content


def _address(scope: Message) -> str:
    client = scope.get("client")
    return counted_address(client[0] if client else "", _header(scope, b"x-forwarded-for"))


def _header(scope: Message, name: bytes) -> str:
    return ",".join(value.decode("latin-1") for sent, value in scope["headers"] if sent == name)
