"""Submitting once, replaying and cancelling over HTTP, who may, and what goes wrong inside."""

import pytest
from django.db import OperationalError

from executions.models import Execution
from executions.placement.models import Ticket
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.integration.executions.api.executions.calls import ORDER, RUNS, listed, post
from tests.integration.executions.api.runs import submit_order
from tests.integration.tenants.web import member, problem, program, visitor


# --- submitting once
def test_a_key_submits_once(order: str, acme: TenantRef, globex: TenantRef) -> None:
    key = {"idempotency-key": "order-7"}
    first, again = (post(program(acme), **key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first["Location"] == again["Location"]
    other = post(program(acme), {**ORDER, "inputs": {"order_id": 8}}, **key)
    assert problem(other, 409, "idempotency_conflict")["field"] == "idempotency_key"
    assert post(program(globex), **key).status_code == 202
    with tenant_scope(acme):
        assert Execution.objects.count() == 1


@pytest.mark.parametrize("key", ["x" * 201, "\x85"])
def test_a_key_that_does_not_fit(order: str, acme: TenantRef, globex: TenantRef, key: str) -> None:
    body = problem(post(program(acme), **{"idempotency-key": key}), 400, "invalid_input")
    assert body["field"] == "idempotency_key"


def test_the_request_id_stays_with_the_run(order: str, acme: TenantRef, globex: TenantRef) -> None:
    body = post(program(acme), **{"x-request-id": "req-1"}).json()
    assert body["request_id"] == "req-1"


# --- replaying
def test_a_run_is_replayed_with_its_seed_and_inputs(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    client = program(acme)
    original = post(client, {**ORDER, "seed": 42}).json()
    replayed = client.post(f"{RUNS}/{original['id']}/replay", headers={"x-request-id": "req-2"})
    assert replayed.status_code == 202
    body = replayed.json()
    assert replayed["Location"] == f"{RUNS}/{body['id']}"
    assert body["id"] != original["id"]
    assert body["replay_of"] == original["id"]
    assert (body["seed"], body["inputs"], body["version"]) == (42, {"order_id": 7}, 1)
    assert body["request_id"] == "req-2"
    assert listed(program(globex)) == []


def test_a_key_replays_once(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client, key = program(acme), {"Idempotency-Key": "again-1"}
    original, other = (post(client, {**ORDER, "seed": 42}).json()["id"] for _ in range(2))
    first, again = (client.post(f"{RUNS}/{original}/replay", headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    # The same version, inputs and seed, but of another run; and not a replay at all.
    refused = client.post(f"{RUNS}/{other}/replay", headers=key)
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_conflict")
    assert post(client, {**ORDER, "version": 1, "seed": 42}, **key).status_code == 409
    assert len(listed(client)) == 3
    assert listed(program(globex)) == []


# --- cancelling
def test_a_run_that_waits_is_cancelled_at_once(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    client, path = program(acme), f"{RUNS}/{submit_order(acme)}"
    submit_order(globex)
    cancelled = client.post(f"{path}/cancel")
    assert cancelled.status_code == 202
    assert cancelled.json()["state"] == "cancelled"
    assert {step["state"] for step in cancelled.json()["steps"]} == {"cancelled"}
    with platform_scope():
        assert [ticket.tenant_id for ticket in Ticket.objects.all()] == [globex.id]
    problem(client.post(f"{path}/cancel"), 409, "already_ended")


# --- rights
def test_a_viewer_looks_and_does_not_touch(order: str, acme: TenantRef, globex: TenantRef) -> None:
    run = submit_order(acme)
    for client in (program(acme, role=Role.VIEWER), member(acme, Role.VIEWER)):
        assert listed(client) == [run]
        assert client.head(RUNS).status_code == 200
        refused = {
            RUNS: "execution:run",
            f"{RUNS}/{run}/cancel": "execution:cancel",
            f"{RUNS}/{run}/replay": "execution:run",
        }
        for path, right in refused.items():
            body = problem(post(client, path=path), 403, "permission_denied")
            assert f"Role viewer lacks {right}" in body["detail"]


def test_a_session_needs_the_csrf_token(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = member(acme, Role.OPERATOR, enforce_csrf_checks=True)
    body = problem(post(client), 403, "csrf_failed")
    assert "CSRF" in body["detail"]
    token = "t" * 32
    client.cookies["csrftoken"] = token
    accepted = post(client, **{"x-csrftoken": token})
    assert accepted.status_code == 202
    assert accepted.json()["requested_by"].startswith("user:someone-")


# --- methods, and what goes wrong inside
@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_method_that_there_is_not(
    order: str, acme: TenantRef, globex: TenantRef, method: str
) -> None:
    for path in (RUNS, f"{RUNS}/{submit_order(acme)}"):
        answer = getattr(program(acme), method)(path)
        problem(answer, 405, "method_not_allowed")
        assert "GET" in answer["Allow"]


def test_a_caller_may_ask_which_methods_there_are(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    run = f"{RUNS}/{submit_order(acme)}"
    expected = {
        RUNS: "GET, POST, HEAD, OPTIONS",
        run: "GET, HEAD, OPTIONS",
        f"{run}/cancel": "POST, OPTIONS",
    }
    for path, methods in expected.items():
        for client in (program(acme, role=Role.VIEWER), member(acme, Role.VIEWER)):
            answer = client.options(path)
            assert (answer.status_code, answer["Allow"]) == (200, methods)
        problem(visitor().options(path), 401, "not_authenticated")
    assert program(acme).head(f"{run}/cancel").status_code == 405


def test_an_error_inside_shows_nothing_of_it(
    order: str, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("password=hunter2")

    client = program(acme)
    client.raise_request_exception = False
    monkeypatch.setattr("executions.api.views.executions.executions", fail)
    answer = client.get(RUNS)
    problem(answer, 500, "internal_error")
    assert b"hunter2" not in answer.content
    assert b"RuntimeError" not in answer.content


def test_a_database_that_goes_away_inside(
    order: str, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise OperationalError("password=hunter2")

    client = program(acme)
    monkeypatch.setattr("executions.api.views.executions.executions", fail)
    answer = client.get(RUNS)
    assert "hunter2" not in problem(answer, 503, "unavailable")["detail"]
    assert answer["Retry-After"] == "5"
