"""Events, logs and costs of a run over HTTP, each tenant for itself."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from executions.models import CostRecord, ExecutionEvent, StepLog
from executions.selectors.executions import parse_id
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import submit_order
from tests.integration.tenants.web import member, problem, program

RUNS = "/api/v1/executions"


@pytest.fixture
def runs(order: str, acme: TenantRef, globex: TenantRef) -> dict[str, str]:
    """A run with a history in each tenant."""
    found = {}
    for tenant in (acme, globex):
        run = found[tenant.schema] = submit_order(tenant)
        with tenant_scope(tenant):
            _write_history(run, tenant.schema)
    return found


def _write_history(run: str, text: str) -> None:
    now, execution_id = timezone.now(), parse_id(run)
    for number in range(1, 6):
        if number > 1:  # the first was written with the run
            ExecutionEvent.objects.create(
                execution_id=execution_id, sequence=number, at=now, kind="step.progress",
                step="fetch", data={"message": text},
            )  # fmt: skip
        StepLog.objects.create(
            execution_id=execution_id, number=number, at=now, step="ship" if number == 5 else "fetch",
            attempt=1, level="info", message=f"{text} {number}",
        )  # fmt: skip
        CostRecord.objects.create(
            execution_id=execution_id, step="fetch", attempt=number, kind="eur",
            amount=Decimal("0.1"), at=now,
        )  # fmt: skip


def get(client: Client, run: str, what: str, query: str = "") -> dict[str, Any]:
    answer = client.get(f"{RUNS}/{run}/{what}{query}")
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_events_are_read_in_order_and_in_pieces(runs: dict[str, str], acme: TenantRef) -> None:
    client = program(acme, role=Role.VIEWER)
    whole = get(client, runs["acme"], "events")
    assert [event["sequence"] for event in whole["results"]] == [1, 2, 3, 4, 5]
    assert (whole["after"], whole["has_more"]) == (5, False)
    assert whole["results"][0]["kind"] == "execution.queued"
    assert whole["results"][1] | {"at": ""} == {
        "sequence": 2, "at": "", "kind": "step.progress", "step": "fetch", "data": {"message": "acme"},
    }  # fmt: skip
    piece = get(client, runs["acme"], "events", "?after=1&page_size=2")
    assert [event["sequence"] for event in piece["results"]] == [2, 3]
    assert (piece["after"], piece["has_more"]) == (3, True)
    end = get(client, runs["acme"], "events", "?after=5")
    assert end == {"after": 5, "has_more": False, "results": []}


def test_logs_are_those_of_the_tenant_and_of_a_step(runs: dict[str, str], acme: TenantRef) -> None:
    for client in (program(acme), member(acme, Role.VIEWER)):
        lines = get(client, runs["acme"], "logs")["results"]
        assert [line["message"] for line in lines] == [f"acme {number}" for number in range(1, 6)]
        assert {(line["level"], line["attempt"]) for line in lines} == {("info", 1)}
        ids = {(line["execution_id"], line["tenant_id"]) for line in lines}
        assert ids == {(runs["acme"], "acme")}
        of_ship = get(client, runs["acme"], "logs", "?step=ship")
        assert [line["number"] for line in of_ship["results"]] == [5]
        assert get(client, runs["acme"], "logs", "?step=nothing")["results"] == []


def test_costs_are_exact(runs: dict[str, str], acme: TenantRef) -> None:
    client = program(acme)
    costs = get(client, runs["acme"], "costs", "?page_size=3")
    assert costs["totals"] == {"eur": "0.5"}
    assert [(record["attempt"], record["amount"]) for record in costs["results"]] == [
        (1, "0.1"),
        (2, "0.1"),
        (3, "0.1"),
    ]
    rest = get(client, runs["acme"], "costs", f"?after={costs['after']}")
    assert [record["attempt"] for record in rest["results"]] == [4, 5]
    assert rest["totals"] == {"eur": "0.5"}


@pytest.mark.parametrize("what", ["events", "logs", "costs"])
@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", f"after={2**64}", "page_size=0", "page_size=1001", "colour=red", "after="],
)  # fmt: skip
def test_a_wrong_query_is_refused(
    runs: dict[str, str], acme: TenantRef, what: str, query: str
) -> None:
    body = problem(program(acme).get(f"{RUNS}/{runs['acme']}/{what}?{query}"), 400, "invalid_input")
    assert body["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


@pytest.mark.parametrize("what", ["events", "logs", "costs"])
@pytest.mark.parametrize("after", [2**31, 2**63 - 1])
def test_behind_the_end_there_is_nothing(
    runs: dict[str, str], acme: TenantRef, what: str, after: int
) -> None:
    body = get(program(acme), runs["acme"], what, f"?after={after}")
    assert (body["results"], body["after"], body["has_more"]) == ([], after, False)


def test_a_step_that_is_no_text_is_refused(runs: dict[str, str], acme: TenantRef) -> None:
    problem(program(acme).get(f"{RUNS}/{runs['acme']}/logs?step=%00"), 400, "invalid_input")
