"""The failure of a step when HTTP fails: a code of the table, and a message without secrets or whole bodies."""

from http import HTTPStatus

import httpx

from isolane.results import Code, StepError
from isolane.text import storable

EXCERPT_MAX = 200  # characters of a remote server's answer
_SECRET_MIN = 6  # characters; shorter header values are not secrets, and would mask common words


def of_error(what: str, error: httpx.HTTPError) -> StepError:
    """Return the failure for a request without an answer."""
    if isinstance(error, httpx.TimeoutException):
        return StepError(Code.TIMEOUT, f"{what}: {type(error).__name__}, no whole answer in time")
    reason = storable(f"{type(error).__name__} {error}".strip(), EXCERPT_MAX)
    if isinstance(error, httpx.TransportError):
        return StepError(Code.TRANSIENT_ERROR, f"{what}: no answer, {reason}")
    return StepError(Code.UNKNOWN_ERROR, f"{what}: {reason}")


def of_status(what: str, response: httpx.Response, body: str) -> StepError:
    """Return the failure for this answer; `body` is the beginning of its body."""
    status = response.status_code
    message = f"{what} answered {status} {_phrase(status)}".rstrip()
    if 300 <= status < 400:
        message += "; redirects are not followed"
    if text := excerpt(body, response.request):
        message += f": {text}"
    return StepError(_code(status), message)


def excerpt(text: str, request: httpx.Request) -> str:
    """Return the beginning of a remote server's answer, without values of the request's headers."""
    for value in request.headers.values():
        for secret in (value, value.partition(" ")[2]):
            if len(secret) >= _SECRET_MIN:
                text = text.replace(secret, "***")
    return storable(" ".join(text.split()), EXCERPT_MAX)


def _code(status: int) -> Code:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Code.RATE_LIMIT_ERROR
    return Code.TRANSIENT_ERROR if status >= 500 else Code.UNKNOWN_ERROR


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
