"""Refusals before the application sees the request. Pure."""

from collections.abc import Iterable

from foundation.errors import InvalidInput, IsolaneError, TooLarge, Unavailable
from orchestrator.web.limits import WebLimits


class TargetTooLong(IsolaneError):
    """The address of the request is too long."""

    code = "uri_too_long"
    http_status = 414
    title = "The address is too long"


class HeaderTooLarge(IsolaneError):
    """The header has too many fields or bytes."""

    code = "header_too_large"
    http_status = 431
    title = "The header is too large"


class TimedOut(IsolaneError):
    """The request was not complete in time."""

    code = "request_timeout"
    http_status = 408
    title = "The request took too long"


def head_refused(
    target: bytes, headers: Iterable[tuple[bytes, bytes]], limits: WebLimits
) -> IsolaneError | None:
    """Return the error for a request by its first line and header, if any; names are in lower case."""
    fields = list(headers)
    names = {name for name, _ in fields}
    if len(target) > limits.url_bytes:
        return TargetTooLong(f"The address is too long; use at most {limits.url_bytes} bytes.")
    size = len(target) + sum(len(name) + len(value) + 4 for name, value in fields)
    if len(fields) > limits.headers or size > limits.header_bytes:
        return header_too_large(limits)
    if {b"content-length", b"transfer-encoding"} <= names:
        return InvalidInput("Content-Length and Transfer-Encoding exclude each other; send one.")
    if any(int(value) > limits.body_bytes for name, value in fields if name == b"content-length"):
        return body_too_large(limits)
    return None


def header_too_large(limits: WebLimits) -> HeaderTooLarge:
    """Return the error for a header beyond the limit."""
    return HeaderTooLarge(
        "The header is too large; "
        f"send at most {limits.headers} fields and {limits.header_bytes} bytes."
    )


def body_too_large(limits: WebLimits) -> TooLarge:
    """Return the error for a body beyond the limit."""
    return TooLarge(f"The request is too large; send at most {limits.body_bytes} bytes.")


def too_many_chunks(limits: WebLimits) -> TooLarge:
    """Return the error for a body in tiny pieces, which costs far more than its bytes."""
    return TooLarge(f"The request has too many chunks; send at most {limits.chunks}.")


def malformed() -> InvalidInput:
    """Return the error for invalid HTTP/1.1."""
    return InvalidInput("The request is not valid HTTP/1.1.")


def timed_out(limits: WebLimits) -> TimedOut:
    """Return the error for a request that was not complete in time."""
    return TimedOut(
        f"The request was not complete in time; send the header within {limits.header_seconds:g} s "
        f"and the body within {limits.body_seconds:g} s."
    )


def overloaded() -> Unavailable:
    """Return the error for more complete requests than can be answered."""
    return Unavailable("Too many requests are waiting; try again in a few seconds.")


def too_many_streams() -> Unavailable:
    """Return the error for more streams than are kept open."""
    return Unavailable("Too many streams are open; try again in a few seconds.")
