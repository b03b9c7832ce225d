"""Submitting, listing, reading and cancelling runs over HTTP, each tenant for itself."""

import uuid
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import prefetch_related_objects
from django.test import Client
from django.utils import timezone

from executions.models import Execution, Step
from executions.placement.models import Ticket, Worker
from executions.placement.workers import register
from executions.services.blueprints import publish
from tenants.models import Tenant
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.integration.executions.api.runs import BLUEPRINT, submit_order
from tests.integration.tenants.web import host_of, member, problem, program, visitor

RUNS = "/api/v1/executions"
ORDER = {"blueprint": "order", "inputs": {"order_id": 7}}
POSTED = {"/cancel", "/replay"}


def post(client: Client, body: Any = ORDER, path: str = RUNS, **headers: str) -> Any:
    return client.post(path, body, content_type="application/json", headers=headers)


def listed(client: Client, query: str = "") -> list[str]:
    return [run["id"] for run in client.get(RUNS + query).json()["results"]]


# --- submitting
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

    monkeypatch.setattr("executions.api.views.admit_and_send", start)
    client = program(acme)
    body = post(client).json()
    assert body["state"] == "queued"
    assert {step["state"] for step in body["steps"]} == {"pending"}
    assert client.get(f"{RUNS}/{body['id']}").json()["state"] == "running"


def test_an_untrusted_tenant_is_not_run_weaker(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
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


# --- reading
def test_a_tenant_sees_its_own_runs_only_newest_first(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    of_acme = [submit_order(acme) for _ in range(3)]
    of_globex = [submit_order(globex)]
    for tenant, runs in ((acme, of_acme), (globex, of_globex)):
        for client in (program(tenant), program(tenant, host=host_of(tenant))):
            assert listed(client) == runs[::-1]


def test_pages_follow_each_other(order: str, acme: TenantRef, globex: TenantRef) -> None:
    runs = [submit_order(acme) for _ in range(5)]
    submit_order(globex)
    client, seen = program(acme), []
    link: str | None = f"{RUNS}?page_size=2"
    while link:
        page = client.get(link).json()
        assert len(page["results"]) <= 2
        seen += [run["id"] for run in page["results"]]
        submit_order(acme)  # what arrives meanwhile is on no later page
        link = page["next"]
    assert seen == runs[::-1]


def test_lists_are_narrowed(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = program(acme)
    gone, stays = submit_order(acme), submit_order(acme)
    submit_order(globex)
    post(client, path=f"{RUNS}/{gone}/cancel")
    assert listed(client, "?state=cancelled") == [gone]
    assert listed(client, "?state=queued&blueprint=order") == [stays]
    assert listed(client, "?blueprint=other") == []


def test_lists_are_narrowed_by_labels(order: str, acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish({**BLUEPRINT, "labels": {"team": "billing", "tier/one": "a:b"}})
    submit_order(globex)
    labelled, client = submit_order(acme), program(acme)
    plain = post(client, {**ORDER, "version": 1}).json()["id"]
    assert listed(client) == [plain, labelled]
    assert listed(client, "?label=team:billing") == [labelled]
    assert listed(client, "?label=team:billing&label=tier/one:a:b") == [labelled]
    assert listed(client, "?label=team:billing&label=tier/one:b") == []
    assert listed(client, "?label=team:") == []
    assert client.get(f"{RUNS}/{labelled}").json()["labels"] == {
        "team": "billing",
        "tier/one": "a:b",
    }


@pytest.mark.parametrize("query", ["label=team", "label=:billing", "label=", "label=%00:x"])
def test_what_is_no_label_is_refused(
    order: str, acme: TenantRef, globex: TenantRef, query: str
) -> None:
    problem(program(acme).get(f"{RUNS}?{query}"), 400, "invalid_input")


@pytest.mark.parametrize(
    "query", ["state=gone", "page_size=0", "page_size=201", "page_size=many", "colour=red"]
)
def test_a_wrong_query_is_refused(
    order: str, acme: TenantRef, globex: TenantRef, query: str
) -> None:
    body = problem(program(acme).get(f"{RUNS}?{query}"), 400, "invalid_input")
    assert body["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


@pytest.mark.parametrize("position", ["p=nonsense", "p=2026-13-01 00:00Z", "p=2026-01-01 00:00",
                                      "p=2026-01-01T00:00:00%2B23:59", "p=0001-01-01T00:00:00%2B01:00"])  # fmt: skip
def test_a_cursor_that_is_not_ours(
    order: str, acme: TenantRef, globex: TenantRef, position: str
) -> None:
    client = program(acme)
    for cursor in (position, b64encode(position.encode()).decode()):
        problem(client.get(RUNS, {"cursor": cursor}), 404, "not_found")


@pytest.mark.parametrize("action", ["", "/cancel", "/replay", "/events", "/logs", "/costs"])
def test_another_tenants_run_looks_like_one_that_does_not_exist(
    order: str, acme: TenantRef, globex: TenantRef, action: str
) -> None:
    client, of_globex = program(acme), submit_order(globex)
    nobodys = f"exec_{uuid.uuid4()}"
    bodies = []
    for run in (of_globex, nobodys):
        path = f"{RUNS}/{run}{action}"
        answer = client.post(path) if action in POSTED else client.get(path)
        bodies.append(str(problem(answer, 404, "not_found")).replace(run, "…"))
    assert bodies[0] == bodies[1]
    with tenant_scope(globex):
        assert Execution.objects.get().state == "queued"


@pytest.mark.parametrize("run", ["1", "exec_", "exec_1", "exec_%00", "x" * 300])
def test_what_is_no_id_is_refused(order: str, acme: TenantRef, globex: TenantRef, run: str) -> None:
    client = program(acme)
    for action in ("", "/cancel", "/replay", "/events", "/logs", "/costs"):
        path = f"{RUNS}/{run}{action}"
        answer = client.post(path) if action in POSTED else client.get(path)
        assert problem(answer, 400, "invalid_input")["field"] == "id"


def test_a_run_and_its_steps_are_read_as_of_one_moment(
    order: str, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, client = submit_order(acme), program(acme)
    submit_order(globex)

    def meanwhile(*arguments: Any) -> None:
        with ThreadPoolExecutor(max_workers=1) as elsewhere:
            elsewhere.submit(_end_all, acme).result()
        prefetch_related_objects(*arguments)

    monkeypatch.setattr("executions.selectors.prefetch_related_objects", meanwhile)
    body = client.get(f"{RUNS}/{run}").json()
    assert (body["state"], body["steps_done"]) == ("queued", 0)
    assert {step["state"] for step in body["steps"]} == {"pending"}
    monkeypatch.undo()
    assert client.get(f"{RUNS}/{run}").json()["steps_done"] == 2


def _end_all(tenant: TenantRef) -> None:
    with tenant_scope(tenant):
        Execution.objects.update(state="succeeded", finished_at=timezone.now())
        Step.objects.update(state="succeeded")
    connection.close()


def test_what_a_step_shows(order: str, acme: TenantRef, globex: TenantRef) -> None:
    run = submit_order(acme)
    with tenant_scope(acme):
        Step.objects.filter(path="fetch").update(
            state="succeeded", attempt=2, inputs={"order_id": 7}, output={"n": 1},
            code="TIMEOUT", message="too slow", cause="recovered",
        )  # fmt: skip
        Execution.objects.update(
            variables={"x": 1}, outputs={"y": 2}, costs={"tokens": 812, "eur": 0.1}
        )
    body = program(acme).get(f"{RUNS}/{run}").json()
    fetch, ship = body["steps"]
    assert fetch["recovered"] is True
    assert ship["recovered"] is False
    assert {key: fetch[key] for key in ("attempt", "inputs", "output", "code", "message", "cause")} == {
        "attempt": 2, "inputs": {"order_id": 7}, "output": {"n": 1}, "code": "TIMEOUT",
        "message": "too slow", "cause": "recovered",
    }  # fmt: skip
    assert (body["variables"], body["outputs"]) == ({"x": 1}, {"y": 2})
    assert body["costs"] == {"eur": "0.1", "tokens": "812"}
    assert (body["express"], body["wake_at"], body["replay_of"]) == (False, None, None)


def test_nothing_sealed_is_given_out(order: str, acme: TenantRef, globex: TenantRef) -> None:
    secret = {
        **BLUEPRINT,
        "name": "secret",
        "inputs": {"properties": {"card": {"type": "string", "sensitive": True}}},
    }
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish(secret)
    client = program(acme)
    sent = post(client, {"blueprint": "secret", "inputs": {"card": "4111-1111"}})
    assert sent.json()["inputs"] == {"card": "***"}
    again = client.post(f"{sent['Location']}/replay")
    assert again.json()["inputs"] == {"card": "***"}
    assert b"4111" not in client.get(sent["Location"]).content + client.get(RUNS).content


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
    monkeypatch.setattr("executions.api.views.executions", fail)
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
    monkeypatch.setattr("executions.api.views.executions", fail)
    answer = client.get(RUNS)
    assert "hunter2" not in problem(answer, 503, "unavailable")["detail"]
    assert answer["Retry-After"] == "5"
