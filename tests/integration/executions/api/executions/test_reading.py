"""Listing and reading runs over HTTP, each tenant its own."""

import uuid
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.db.models import prefetch_related_objects
from django.utils import timezone

from executions.models import Execution, Step
from executions.services.publishing import publish
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.executions.calls import ORDER, RUNS, listed, post
from tests.integration.executions.api.runs import BLUEPRINT, submit_order
from tests.integration.tenants.web import host_of, problem, program

POSTED = {"/cancel", "/replay"}


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


def test_what_a_run_has_used_is_shown_with_it(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    ours, theirs = submit_order(acme), submit_order(globex)
    with tenant_scope(acme):
        Execution.objects.update(cpu_seconds=1.25, peak_ram_mb=48.5)
    usage = {"cpu_seconds": 1.25, "peak_ram_mb": 48.5}
    assert program(acme).get(f"{RUNS}/{ours}").json()["usage"] == usage
    nothing = {"cpu_seconds": 0.0, "peak_ram_mb": 0.0}
    assert program(globex).get(f"{RUNS}/{theirs}").json()["usage"] == nothing


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

    monkeypatch.setattr("executions.selectors.executions.prefetch_related_objects", meanwhile)
    body = client.get(f"{RUNS}/{run}").json()
    assert (body["state"], body["steps_done"]) == ("queued", 0)
    assert {step["state"] for step in body["steps"]} == {"pending"}
    monkeypatch.undo()
    assert client.get(f"{RUNS}/{run}").json()["steps_done"] == 2


def _end_all(tenant: TenantRef) -> None:
    with tenant_scope(tenant):
        Execution.objects.update(state="running")
        Step.objects.update(state="running")
        Execution.objects.update(state="succeeded", finished_at=timezone.now())
        Step.objects.update(state="succeeded")
    connection.close()


def test_what_a_step_shows(order: str, acme: TenantRef, globex: TenantRef) -> None:
    run = submit_order(acme)
    with tenant_scope(acme):
        Step.objects.filter(path="fetch").update(state="running")
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
