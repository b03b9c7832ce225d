"""The parts of ASGI needed to answer in front of Django.

Timing: request-time.
Model: async.
Guarantee: at-most-once; one answer for one request.
Failure: bubble.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse

from foundation.browser_rules import BrowserRulesMiddleware
from foundation.request_ids import HEADER, usable_id

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def header(scope: Scope, name: bytes) -> str:
    """Return a header of the request, its values joined as Django does; empty if it was not sent."""
    return ",".join(value.decode("latin-1") for sent, value in scope["headers"] if sent == name)


async def whole_body(receive: Receive, *, most: int) -> bytes | None:
    """Return the request's body, or the first bytes of a larger one; None if the caller disconnected."""
    body = b""
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def again(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that replays this body, then whatever comes after it."""
    bodies = [body]

    async def receive_again() -> Message:
        if bodies:
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}
        return await receive()

    return receive_again


def with_headers(scope: Scope, response: HttpResponse) -> HttpResponse:
    """Add the headers that Django's middleware would add."""
    BrowserRulesMiddleware(lambda _: response)(HttpRequest())
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Length"] = str(len(response.content))
    response[HEADER] = usable_id(header(scope, b"x-request-id"))
    return response


async def send_response(send: Send, response: HttpResponse) -> None:
    """Send Django's response."""
    headers = [(name.encode(), value.encode("latin-1")) for name, value in response.items()]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.content})
