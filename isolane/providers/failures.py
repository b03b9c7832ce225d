"""What a step's failure is when HTTP fails: a code of the table, and words without secrets and without whole bodies."""

from http import HTTPStatus

import httpx

from isolane.results import Code, StepError
from isolane.text import storable

EXCERPT_MAX = 200  # characters of what a far side says
_SECRET_MIN = 6  # characters; shorter values of headers are no secrets, and would hide common words


def of_error(what: str, error: httpx.HTTPError) -> StepError:
    """Return the failure that a request without an answer is."""
    if isinstance(error, httpx.TimeoutException):
        return StepError(Code.TIMEOUT, f"{what}: {type(error).__name__}, no whole answer in time")
    reason = storable(f"{type(error).__name__} {error}".strip(), EXCERPT_MAX)
    if isinstance(error, httpx.TransportError):
        return StepError(Code.TRANSIENT_ERROR, f"{what}: no answer, {reason}")
    return StepError(Code.UNKNOWN_ERROR, f"{what}: {reason}")


def of_status(what: str, response: httpx.Response, said: str) -> StepError:
    """Return the failure that this answer is; `said` is the beginning of its body."""
    status = response.status_code
    message = f"{what} answered {status} {_phrase(status)}".rstrip()
    if 300 <= status < 400:
        message += "; redirects are not followed"
    if text := excerpt(said, response.request):
        message += f": {text}"
    return StepError(_code(status), message)


def excerpt(said: str, request: httpx.Request) -> str:
    """Return the beginning of what a far side said, without what the request's headers told it."""
    for value in request.headers.values():
        for secret in (value, value.partition(" ")[2]):
            if len(secret) >= _SECRET_MIN:
                said = said.replace(secret, "***")
    return storable(" ".join(said.split()), EXCERPT_MAX)


def _code(status: int) -> Code:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Code.RATE_LIMIT_ERROR
    return Code.TRANSIENT_ERROR if status >= 500 else Code.UNKNOWN_ERROR


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
