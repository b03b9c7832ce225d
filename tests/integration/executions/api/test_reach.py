"""Callers that are limited to some blueprints: they see nothing of the others, and do nothing to them."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from executions.models import Execution
from executions.services.publishing import publish
from executions.submission.submit import RunRequest, submit
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import BLUEPRINT, submit_order
from tests.integration.tenants.web import member, problem, program

API = "/api/v1"
RUNS = f"{API}/executions"
MakeClient = Callable[..., Client]


@pytest.fixture(params=[program, member], ids=["key", "member"])
def limited(
    request: pytest.FixtureRequest, order: str, acme: TenantRef, globex: TenantRef
) -> Client:
    """An author of acme who reaches the blueprint `order`; both tenants have `payroll`, too."""
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish({**BLUEPRINT, "name": "payroll"})
    make: MakeClient = request.param
    if make is program:
        return program(acme, role=Role.AUTHOR, blueprints=["order"])
    return member(acme, Role.AUTHOR, blueprints=["order"])


def submit_payroll(tenant: TenantRef) -> str:
    run = submit(
        tenant, RunRequest(blueprint="payroll", inputs={"order_id": 1}, requested_by="tests")
    ).execution
    return run.public_id


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.post(path, body or {}, content_type="application/json")


def test_lists_hold_what_is_reached(limited: Client, acme: TenantRef) -> None:
    seen, hidden = submit_order(acme), submit_payroll(acme)
    runs = limited.get(RUNS).json()["results"]
    assert [run["id"] for run in runs] == [seen]
    assert limited.get(f"{RUNS}?blueprint=payroll").json()["results"] == []
    assert [found["name"] for found in limited.get(f"{API}/blueprints").json()["results"]] == [
        "order"
    ]
    assert {run["id"] for run in program(acme).get(RUNS).json()["results"]} == {seen, hidden}


@pytest.mark.parametrize(
    "action", ["", "/events", "/explanation", "/logs", "/costs", "/cancel", "/replay"]
)
def test_a_run_out_of_reach_looks_like_one_that_does_not_exist(
    limited: Client, acme: TenantRef, action: str
) -> None:
    bodies = []
    for run in (submit_payroll(acme), f"exec_{uuid.uuid4()}"):
        path = f"{RUNS}/{run}{action}"
        answer = post(limited, path) if action in {"/cancel", "/replay"} else limited.get(path)
        bodies.append(str(problem(answer, 404, "not_found")).replace(run, "…"))
    assert bodies[0] == bodies[1]
    with tenant_scope(acme):
        assert [run.state for run in Execution.objects.all()] == ["queued"]


def test_what_is_reached_is_run_replayed_and_cancelled(limited: Client, acme: TenantRef) -> None:
    sent = post(limited, RUNS, {"blueprint": "order", "inputs": {"order_id": 7}})
    assert sent.status_code == 202
    assert post(limited, f"{sent['Location']}/replay").status_code == 202
    assert post(limited, f"{sent['Location']}/cancel").status_code == 202
    for what in ("", "/events", "/explanation", "/logs", "/costs"):
        assert limited.get(sent["Location"] + what).status_code == 200


def test_another_blueprint_is_neither_run_nor_published(limited: Client, acme: TenantRef) -> None:
    bodies = []
    for name in ("payroll", "nothing"):
        ran = post(limited, RUNS, {"blueprint": name, "inputs": {"order_id": 7}})
        bodies.append(str(problem(ran, 403, "permission_denied")).replace(name, "…"))
    assert bodies[0] == bodies[1]
    source = "name: payroll\nsteps: [{key: ship, uses: shop.ship}]"
    refused = post(limited, f"{API}/blueprints", {"source": source})
    assert (
        "blueprint:edit on blueprint 'payroll'"
        in problem(refused, 403, "permission_denied")["detail"]
    )
    assert program(acme).get(f"{API}/blueprints/payroll").json()["version"] == 1
    pushed = post(limited, f"{API}/blueprints", {"source": source.replace("payroll", "order")})
    assert pushed.status_code == 201


@pytest.mark.parametrize("path", ["", "/versions/1", "/diff?old=1&new=1"])
def test_a_blueprint_out_of_reach_looks_like_one_that_does_not_exist(
    limited: Client, path: str
) -> None:
    bodies = [
        str(problem(limited.get(f"{API}/blueprints/{name}{path}"), 404, "not_found")).replace(
            name, "…"
        )
        for name in ("payroll", "nothing")
    ]
    assert bodies[0] == bodies[1]
    assert limited.get(f"{API}/blueprints/order{path}").status_code == 200
