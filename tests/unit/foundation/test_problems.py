"""Every kind of refusal has the same shape."""

import json
from typing import Any

import pytest
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from rest_framework import exceptions

from foundation import problems
from foundation.errors import (
    Conflict,
    CsrfFailed,
    Forbidden,
    InvalidInput,
    IsolaneError,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

ERRORS: list[type[IsolaneError]] = [
    IsolaneError, InvalidInput, NotFound, Conflict, Forbidden, Unauthenticated, Unavailable,
    TooLarge, CsrfFailed,
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
        (RequestDataTooBig("inside"), 413, "too_large"),
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


def test_many_validation_errors_are_cut() -> None:
    raised = exceptions.ValidationError({f"{n}" + "f" * 1000: ["x" * 1000] for n in range(1000)})
    body = handled(raised)
    assert len(body["errors"]) == 20
    for error in body["errors"]:
        assert [len(text) for text in error.values()] == [200, 200]
        assert all(text.endswith("…") for text in error.values())


def test_a_long_detail_is_cut() -> None:
    for raised in (InvalidInput("x" * 9000, field="f" * 9000), exceptions.NotFound("x" * 9000)):
        assert handled(raised)["detail"] == "x" * 499 + "…"
    assert len(handled(InvalidInput("x", field="f" * 9000))["field"]) == 200
    assert handled(InvalidInput("x" * 500))["detail"] == "x" * 500


@pytest.mark.parametrize(
    "raised",
    [
        InvalidInput("\ud800" * 900, field="\ud800"),
        exceptions.ValidationError({"\ud800": ["\ud800"]}),
        exceptions.NotFound("\ud800"),
    ],
)
def test_what_is_repeated_can_be_sent(raised: Exception) -> None:
    shown = json.dumps(handled(raised), ensure_ascii=False).encode().decode()
    assert "ud800" in shown


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


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        (problems.bad_request(HttpRequest(), RequestDataTooBig("inside")), 413, "too_large"),
        (problems.csrf_failure(HttpRequest(), reason="inside"), 403, "csrf_failed"),
    ],
)
def test_djangos_own_handlers_with_codes_of_their_own(
    response: Any, status: int, code: str
) -> None:
    body = json.loads(response.content)
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert b"inside" not in response.content


def test_djangos_own_handler_for_the_unexpected() -> None:
    response = problems.server_error(HttpRequest())
    assert response.status_code == 500
    assert json.loads(response.content)["code"] == "internal_error"


# --- the database is away, seen from Django's own handlers
def answer_to(raised: Exception) -> Any:
    """As Django asks for one, while it handles what was raised."""

    def fail() -> None:
        raise raised

    try:
        fail()
    except Exception:  # noqa: BLE001 - as Django does
        return problems.server_error(HttpRequest())


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_what_the_database_is_behind_is_no_error_of_ours(error: type[Exception]) -> None:
    answer = answer_to(error("inside"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert b"inside" not in answer.content
    assert answer_to(ValueError("inside")).status_code == 500


def test_nor_of_the_callers() -> None:
    raised = SessionInterrupted("gone")
    assert problems.bad_request(HttpRequest(), raised).status_code == 400
    raised.__context__ = OperationalError("inside")
    answer = problems.bad_request(HttpRequest(), raised)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
