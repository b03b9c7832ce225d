"""Errors as RFC 9457 problems: one form for all error responses of web."""

import logging
import sys
from collections.abc import Iterator
from http import HTTPStatus
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from foundation.errors import (
    CsrfFailed,
    Forbidden,
    InvalidInput,
    IsolaneError,
    NotFound,
    TooLarge,
    Unavailable,
)

CONTENT_TYPE = "application/problem+json"
# A response that repeats parts of the request must not grow with it.
MAX_ERRORS = 20
MAX_ERROR_LENGTH = 200
MAX_DETAIL_LENGTH = 500
logger = logging.getLogger(__name__)


def problem(error: IsolaneError, **extra: Any) -> dict[str, Any]:
    """Return the body of a problem."""
    body: dict[str, Any] = {
        "type": f"urn:isolane:problem:{error.code}",
        "title": error.title,
        "status": error.http_status,
        "detail": echo(error.detail, MAX_DETAIL_LENGTH),
        "code": error.code,
    }
    if error.field:
        body["field"] = echo(error.field)
    return {**body, **extra}


def echo(value: object, most: int = MAX_ERROR_LENGTH) -> str:
    """Return a text that may hold parts of the request, shortened and valid in UTF-8."""
    text = str(value)[: most + 1].encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


def problem_response(error: IsolaneError) -> JsonResponse:
    """Return a problem response, outside of DRF's views."""
    return JsonResponse(
        problem(error),
        status=error.http_status,
        content_type=CONTENT_TYPE,
        headers=headers_of(error),
    )


def exception_handler(raised: Exception, context: dict[str, Any]) -> Response | None:
    """Render an error of a DRF view; unexpected ones go on to Django, which logs them and answers 500."""
    match raised:
        case exceptions.ValidationError():
            errors = list(islice(_flatten(raised.detail), MAX_ERRORS))
            error: IsolaneError = InvalidInput(f"{errors[0]['field']}: {errors[0]['detail']}")
            return _response(error, errors=errors)
        case exceptions.APIException():
            return _from_drf(raised)
        case IsolaneError():
            return _response(raised)
        case Http404():
            return _response(NotFound("There is nothing at this address."))
        case PermissionDenied():
            return _response(Forbidden("You may not do that."))
        case RequestDataTooBig():
            return _response(too_large())
        case RecursionError():
            return _response(InvalidInput("The request is nested too deeply."))
        case OperationalError() | InterfaceError():
            logger.error("the database does not answer", exc_info=raised)
            return _response(database_away())
        case _:
            return None


def database_away() -> Unavailable:
    """Return the error for a database that does not answer."""
    return Unavailable("The database does not answer; try again in a few seconds.")


def means_database_away(error: BaseException | None) -> bool:
    """Return True if a database error is among the causes; Django reports a session it cannot save as deleted."""
    while error is not None:
        if isinstance(error, OperationalError | InterfaceError):
            return True
        error = error.__cause__ or error.__context__
    return False


def csrf_failed() -> CsrfFailed:
    """Return the error for a missing or invalid CSRF token."""
    return CsrfFailed("The CSRF token is missing or not valid; load the page again and repeat.")


def too_large() -> TooLarge:
    """Return the error for a request that is larger than Django's limit."""
    return TooLarge(
        f"The request is too large; send at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
    )


def _response(error: IsolaneError, **extra: Any) -> Response:
    return Response(
        problem(error, **extra),
        status=error.http_status,
        content_type=CONTENT_TYPE,
        headers=headers_of(error),
    )


def headers_of(error: IsolaneError) -> dict[str, str]:
    """Return the headers of a problem response."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retryable else {}
    if error.http_status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="isolane"'
    return headers


def _from_drf(raised: exceptions.APIException) -> Response:
    body = {
        "type": f"urn:isolane:problem:{raised.default_code}",
        "title": HTTPStatus(raised.status_code).phrase,
        "status": raised.status_code,
        "detail": echo(raised.detail, MAX_DETAIL_LENGTH),
        "code": raised.default_code,
    }
    headers = {"WWW-Authenticate": 'Bearer realm="isolane"'} if raised.status_code == 401 else {}
    return Response(body, status=raised.status_code, content_type=CONTENT_TYPE, headers=headers)


def _flatten(detail: Any, path: str = "") -> Iterator[dict[str, str]]:
    """Flatten DRF's nested errors to fields and sentences."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from _flatten(value, ".".join(part for part in (path, name) if part))
    elif isinstance(detail, list):
        for item in detail:
            yield from _flatten(item, path)
    else:
        yield {"field": echo(path or "body"), "detail": echo(detail)}


# --- Django's own handlers, for errors outside of DRF views
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400; 413 for a request that is too large; 503 if the database does not answer."""
    if isinstance(exception, RequestDataTooBig):
        return problem_response(too_large())
    if means_database_away(exception):
        return problem_response(database_away())
    return problem_response(InvalidInput("The request is malformed."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    return problem_response(Forbidden("You may not do that."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form without a valid CSRF token; the reason may name hosts and is not shown."""
    return problem_response(csrf_failed())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404."""
    return problem_response(NotFound("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 while the database does not answer, without internal details; the log has them."""
    if means_database_away(sys.exception()):  # Django calls this while it handles the error
        return problem_response(database_away())
    return problem_response(IsolaneError("The error was logged; try again, or ask the operator."))
