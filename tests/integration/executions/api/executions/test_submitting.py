"""Submitting runs over HTTP: what is accepted, and what is refused and why."""

import uuid
from typing import Any

import pytest
from django.conf import LazySettings

from executions.models import Execution, Step
from executions.placement.models import Ticket, Worker
from executions.placement.registry import register
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.integration.executions.api.executions.calls import ORDER, RUNS, post
from tests.integration.tenants.web import problem, program


def test_a_submission_is_accepted_and_waits(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = program(acme)
    accepted = post(client)
    assert accepted.status_code == 202
    body = accepted.json()
    assert accepted["Location"] == f"{RUNS}/{body['id']}"
    assert client.get(accepted["Location"]).json() == body
    with platform_scope():
        ticket = Ticket.objects.get()
    assert f"exec_{ticket.execution_id}" == body["id"]
    assert ticket.execution_id.version == 4
    assert (ticket.tenant_id, ticket.state, ticket.epoch) == (acme.id, "waiting", 1)
    assert (ticket.isolation, ticket.catalogue_id) == ("shared", order)


def test_what_a_run_shows(order: str, acme: TenantRef, globex: TenantRef) -> None:
    body = post(program(acme), {**ORDER, "version": 1, "seed": 2**53}).json()
    assert body["requested_by"].startswith("key:isl_")
    assert {key: body[key] for key in ("blueprint", "version", "state", "inputs", "seed")} == {
        "blueprint": "order",
        "version": 1,
        "state": "queued",
        "inputs": {"order_id": 7},
        "seed": 2**53,
    }
    assert (body["steps_done"], body["steps_total"]) == (0, 2)
    assert [(step["path"], step["uses"], step["state"]) for step in body["steps"]] == [
        ("fetch", "shop.fetch_order", "pending"),
        ("ship", "shop.ship", "pending"),
    ]


def test_a_worker_that_lives_is_given_the_run_at_once(
    order: str, acme: TenantRef, globex: TenantRef, broker: Any
) -> None:
    with platform_scope():
        register(
            boot=uuid.uuid4(),
            node_name="w1",
            lane="lane.w1",
            capacity=2,
            levels=["shared"],
            catalogue=order,
        )
    assert post(program(acme)).status_code == 202
    with platform_scope():
        assert Ticket.objects.get().worker == Worker.objects.get()
    assert broker.llen("lane.w1") == 1


def test_the_answer_tells_of_the_run_before_it_starts(
    order: str, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(**_: Any) -> None:
        with tenant_scope(acme):
            Execution.objects.update(state="running")
            Step.objects.filter(path="fetch").update(state="running")

    monkeypatch.setattr("executions.api.views.executions.admit_and_send", start)
    client = program(acme)
    body = post(client).json()
    assert body["state"] == "queued"
    assert {step["state"] for step in body["steps"]} == {"pending"}
    assert client.get(f"{RUNS}/{body['id']}").json()["state"] == "running"


def test_an_untrusted_tenant_is_not_run_weaker(
    order: str, acme: TenantRef, globex: TenantRef, settings: LazySettings
) -> None:
    settings.RUNTIMES = {
        "shared": settings.RUNTIMES["shared"]
    }  # what is offered while no worker lives
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(trusted=False)
    body = problem(post(program(acme)), 409, "isolation_unavailable")
    assert "needs isolation process or stricter" in body["detail"]
    with tenant_scope(acme):
        assert not Execution.objects.exists()
    assert post(program(globex)).status_code == 202


def test_before_the_first_worker_nothing_can_be_submitted(
    acme: TenantRef, globex: TenantRef
) -> None:
    refused = post(program(acme))
    problem(refused, 503, "no_worker_yet")
    assert refused["Retry-After"] == "5"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"blueprint": None}, "blueprint"),
        ({"blueprint": ["order"]}, "blueprint"),
        ({"blueprint": "x" * 101}, "blueprint"),
        ({"inputs": [7]}, "inputs"),
        ({"version": 0}, "version"),
        ({"version": "newest"}, "version"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_a_wrong_field_is_named(
    order: str, acme: TenantRef, globex: TenantRef, change: dict[str, Any], field: str
) -> None:
    body = problem(post(program(acme), {**ORDER, **change}), 400, "invalid_input")
    assert [error["field"] for error in body["errors"]] == [field]
    assert body["detail"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("inputs", "field"),
    [({}, "inputs"), ({"order_id": "7"}, "inputs.order_id"), ({"order_id": 0}, "inputs.order_id")],
)
def test_inputs_must_fit_the_blueprint(
    order: str, acme: TenantRef, globex: TenantRef, inputs: dict[str, Any], field: str
) -> None:
    body = problem(
        post(program(acme), {"blueprint": "order", "inputs": inputs}), 400, "invalid_input"
    )
    assert body["field"] == field


@pytest.mark.parametrize(
    ("sent", "content_type", "status", "code"),
    [
        ("{", "application/json", 400, "parse_error"),
        ("[]", "application/json", 400, "invalid_input"),
        ('"order"', "application/json", 400, "invalid_input"),
        ('{"blueprint": "order", "inputs": {"order_id": NaN}}', "application/json", 400, "parse_error"),
        ('{"inputs": ' + "[" * 9000 + "]" * 9000 + "}", "application/json", 400, "invalid_input"),
        ("blueprint=order", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    ],
    ids=["cut", "list", "text", "nan", "deep", "form"],
)  # fmt: skip
def test_a_malformed_body(
    order: str, acme: TenantRef, globex: TenantRef, sent: str, content_type: str, status: int, code: str
) -> None:  # fmt: skip
    problem(program(acme).post(RUNS, sent, content_type=content_type), status, code)


@pytest.mark.parametrize(
    "sent",
    [r'{"\ud800": 1}', r'{"blueprint": "\ud800"}', r'{"blueprint": "order", "inputs": {"\ud800": 1}}',
     r'{"blueprint": "order", "inputs": {"order_id": "\ud800"}}', r'{"blueprint": "order", "version": "\ud800"}'],
)  # fmt: skip
def test_what_utf8_cannot_say_is_refused(
    order: str, acme: TenantRef, globex: TenantRef, sent: str
) -> None:
    answer = program(acme).post(RUNS, sent, content_type="application/json")
    problem(answer, 400, "invalid_input")


@pytest.mark.parametrize(
    "body",
    [
        {f"{number}-{'x' * 1000}": 1 for number in range(1000)},
        {"blueprint": "order", "inputs": {"order_id": "x" * 100_000}},
        {"blueprint": "order", "version": "9" * 100_000},
    ],
    ids=["fields", "input", "number"],
)
def test_an_answer_does_not_grow_with_the_request(
    order: str, acme: TenantRef, globex: TenantRef, body: dict[str, Any]
) -> None:
    answer = post(program(acme), body)
    assert len(answer.content) < 10_000
    assert len(problem(answer, 400, "invalid_input").get("errors", [])) <= 20


def test_a_request_that_is_too_large(order: str, acme: TenantRef, globex: TenantRef) -> None:
    refused = post(program(acme), {**ORDER, "inputs": {"note": "x" * 3_000_000}})
    assert "at most 2621440 bytes" in problem(refused, 413, "too_large")["detail"]


@pytest.mark.parametrize(
    ("change", "name"), [({"blueprint": "nothing"}, "'nothing'"), ({"version": 9}, "'order@9'")]
)
def test_an_unknown_blueprint_or_version(
    order: str, acme: TenantRef, globex: TenantRef, change: dict[str, Any], name: str
) -> None:
    body = problem(post(program(acme), {**ORDER, **change}), 404, "not_found")
    assert body["field"] == "blueprint"
    assert name in body["detail"]
