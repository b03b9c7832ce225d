"""Every kind of refusal has the same shape."""

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from rest_framework import exceptions

from orchestrator.core import problems
from orchestrator.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    IsolaneError,
    NotFound,
    Unauthenticated,
    Unavailable,
)

ERRORS: list[type[IsolaneError]] = [
    IsolaneError, InvalidInput, NotFound, Conflict, Forbidden, Unauthenticated, Unavailable,
]  # fmt: skip


def handled(raised: Exception) -> dict[str, Any]:
    response = problems.exception_handler(raised, {})
    assert response is not None
    assert response.content_type == "application/problem+json"
    body: dict[str, Any] = response.data
    assert body["status"] == response.status_code
    assert body["type"] == f"urn:isolane:problem:{body['code']}"
    return body


@pytest.mark.parametrize("error", ERRORS)
def test_our_errors_inside_and_outside_of_drf(error: type[IsolaneError]) -> None:
    raised = error("Because.", field="name")
    body = handled(raised)
    assert body == {
        "type": f"urn:isolane:problem:{error.code}",
        "title": error.title,
        "status": error.http_status,
        "detail": "Because.",
        "code": error.code,
        "field": "name",
    }
    outside = problems.problem_response(raised)
    assert outside["Content-Type"] == "application/problem+json"
    assert json.loads(outside.content) == body


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (Http404("inside"), 404, "not_found"),
        (PermissionDenied("inside"), 403, "permission_denied"),
        (RecursionError("inside"), 400, "invalid_input"),
        (OperationalError("inside"), 503, "unavailable"),
        (InterfaceError("inside"), 503, "unavailable"),
        (exceptions.NotAuthenticated(), 401, "not_authenticated"),
        (exceptions.ParseError(), 400, "parse_error"),
        (exceptions.UnsupportedMediaType("text/csv"), 415, "unsupported_media_type"),
    ],
)
def test_others_errors_get_the_same_shape(raised: Exception, status: int, code: str) -> None:
    body = handled(raised)
    assert (body["status"], body["code"]) == (status, code)
    assert "inside" not in str(body)


def test_a_title_is_the_same_for_every_error_of_a_kind() -> None:
    titles = {handled(exceptions.MethodNotAllowed(method))["title"] for method in ("PUT", "PATCH")}
    assert titles == {"Method Not Allowed"}


def test_nested_validation_errors_become_a_list() -> None:
    raised = exceptions.ValidationError(
        {"inputs": {"order": ["Too small."]}, "non_field_errors": ["Odd."]}
    )
    body = handled(raised)
    assert body["code"] == "invalid_input"
    assert body["detail"] == "inputs.order: Too small."
    assert body["errors"] == [
        {"field": "inputs.order", "detail": "Too small."},
        {"field": "body", "detail": "Odd."},
    ]


def test_the_unexpected_is_left_to_django() -> None:
    assert problems.exception_handler(RuntimeError("inside"), {}) is None


@pytest.mark.parametrize(
    ("error", "header"),
    [(Unavailable("x"), "Retry-After"), (Unauthenticated("x"), "WWW-Authenticate")],
)
def test_headers_say_what_to_do(error: IsolaneError, header: str) -> None:
    response = problems.exception_handler(error, {})
    assert response is not None
    assert header in response.headers
    assert header in problems.problem_response(error).headers


@pytest.mark.parametrize(
    ("handler", "status"),
    [(problems.bad_request, 400), (problems.permission_denied, 403), (problems.not_found, 404)],
)
def test_djangos_own_handlers(handler: Any, status: int) -> None:
    response = handler(HttpRequest(), ValueError("inside"))
    assert response.status_code == json.loads(response.content)["status"] == status
    assert b"inside" not in response.content


def test_djangos_own_handler_for_the_unexpected() -> None:
    response = problems.server_error(HttpRequest())
    assert response.status_code == 500
    assert json.loads(response.content)["code"] == "internal_error"
