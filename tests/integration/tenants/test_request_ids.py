"""Every answer carries the request's id, and so does every log line that was written for it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from foundation.logs import JsonFormatter
from foundation.request_ids import RequestIdMiddleware, current_request_id
from tenants.roles import Role
from tenants.scope import TenantRef
from tests.integration.tenants.web import host_of, member, problem, program, visitor

RUNS = "/api/v1/executions"
SENT = "Trace-7f.3_a"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log as an operator reads it."""
    handler = logging.StreamHandler(written := io.StringIO())
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


# --- answers
def test_a_callers_id_comes_back_whatever_the_answer(acme: TenantRef, globex: TenantRef) -> None:
    answers = [
        (200, program(acme), RUNS),
        (200, member(globex, Role.VIEWER), RUNS),
        (200, visitor("10.0.0.7"), "/healthz"),
        (302, visitor(), "/"),
        (400, visitor("evil.example.com"), RUNS),
        (401, visitor(host_of(acme)), RUNS),
        (404, visitor(), "/no/such/page"),
        (401, visitor("nobody.isolane.test"), RUNS),
        (405, program(acme), None),
    ]
    for status, client, path in answers:
        headers = {"x-request-id": SENT}
        answer = client.get(path, headers=headers) if path else client.delete(RUNS, headers=headers)
        assert (answer.status_code, answer["X-Request-ID"]) == (status, SENT), path


@pytest.mark.parametrize("sent", [None, "", "a b", "a\tb", "x" * 65, "ä", "a,b", "<script>", "a/b"])
def test_without_a_usable_id_each_request_gets_its_own(acme: TenantRef, sent: str | None) -> None:
    headers = {} if sent is None else {"x-request-id": sent}
    ids = {visitor().get("/healthz", headers=headers)["X-Request-ID"] for _ in range(2)}
    assert len(ids) == 2
    assert all(len(given) == 32 and int(given, 16) >= 0 for given in ids)


def test_a_view_reads_it_and_nothing_is_left_afterwards() -> None:
    seen = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.extend([request.request_id, current_request_id()])  # type: ignore[attr-defined]
        return HttpResponse()

    request = RequestFactory().get("/", headers={"x-request-id": "x" * 64})
    RequestIdMiddleware(view)(request)
    assert seen == ["x" * 64] * 2
    assert current_request_id() == ""


# --- the log
def test_an_unexpected_error_is_found_by_its_id(
    acme: TenantRef, globex: TenantRef, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_host: str) -> None:
        logging.getLogger("tests").warning("about to fail", extra={"event": "TEST"})
        raise RuntimeError("password=hunter2")

    client = visitor(host_of(acme), raise_request_exception=False)
    monkeypatch.setattr("tenants.middleware.tenant_by_host", fail)
    answer = client.get(RUNS, headers={"x-request-id": SENT})
    problem(answer, 500, "internal_error")
    assert answer["X-Request-ID"] == SENT
    warned, failed = lines(log)
    assert (warned["message"], warned["event"]) == ("about to fail", "TEST")
    assert "RuntimeError" in failed["trace"]
    assert {line["request_id"] for line in (warned, failed)} == {SENT}


def test_the_line_that_django_writes_after_the_answer_has_it(
    acme: TenantRef, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_host: str) -> None:
        raise OperationalError("away")

    monkeypatch.setattr("tenants.middleware.tenant_by_host", fail)
    answer = visitor(host_of(acme)).get(RUNS, headers={"x-request-id": SENT})
    problem(answer, 503, "unavailable")
    ours, djangos = lines(log)
    assert (ours["logger"], djangos["logger"]) == ("tenants.middleware", "django.request")
    assert {line["request_id"] for line in (ours, djangos)} == {SENT}


def test_outside_of_requests_a_line_has_only_the_id_it_was_given(log: io.StringIO) -> None:
    logger = logging.getLogger("tests")
    logger.warning("no request")
    logger.warning("a run of one", extra={"request_id": "from-the-run"})
    assert [line.get("request_id") for line in lines(log)] == [None, "from-the-run"]
