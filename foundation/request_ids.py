"""The id of a request: the caller's own if it is valid, else a new one; in the response and on every log line.

Timing: request-time.
Model: sync, in a thread; the id is in the context of that thread until the response is ready.
Guarantee: every response has the id, also errors, as long as this is the outermost middleware.
Failure: none of its own; an invalid id is replaced.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from uuid import uuid4

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")  # safe in headers, logs and file names
_CURRENT: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware:
    """Set request.request_id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response with the request's id."""
        request_id = usable_id(request.headers.get(HEADER, ""))
        request.request_id = request_id  # type: ignore[attr-defined]  # ours
        token = _CURRENT.set(request_id)
        try:
            response = self._get_response(request)
        finally:
            _CURRENT.reset(token)
        response[HEADER] = request_id
        return response


def usable_id(sent: str) -> str:
    """Return the id that was sent if it is valid, else a new one."""
    return sent if USABLE.match(sent) else uuid4().hex


def current_request_id() -> str:
    """Return the id of the current request; empty outside of requests."""
    return _CURRENT.get()
