"""The story of a run over HTTP, each tenant for itself."""

from datetime import UTC, datetime
from typing import Any

import pytest

from executions.models import Execution, ExecutionEvent
from executions.selectors.executions import parse_id
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import submit_order
from tests.integration.tenants.web import member, problem, program

RUNS = "/api/v1/executions"
AT = datetime(2026, 3, 4, 10, 2, 11, 120_000, tzinfo=UTC)
HAPPENED: list[tuple[str, str, dict[str, Any]]] = [
    ("placement.began", "", {"epoch": 1, "worker": "w1@host"}),
    ("step.started", "fetch", {"attempt": 1, "epoch": 1, "worker": "w1@host"}),
    ("placement.lost", "fetch", {"epoch": 1, "reason": "worker_lost", "worker": "w1@host", "unbilled": True}),
    ("fence.refused", "fetch", {"epoch": 1, "worker": "w1@host", "what": "checkpoint"}),
    ("order.blessed", "fetch", {"by": "nobody"}),
]  # fmt: skip
TOLD = [
    "Submitted.",
    "Placed on w1@host (placement 1).",
    "Step fetch began (attempt 1).",
    ("The worker w1@host was lost; step fetch was interrupted and will run again."
    " What this attempt cost is not billed. (placement 1 ended)"),
    "w1@host, which no longer held the run, wanted to write a checkpoint of step fetch and was refused (placement 1).",
    "order.blessed, step fetch.",
]  # fmt: skip


@pytest.fixture
def run(order: str, acme: TenantRef, globex: TenantRef) -> str:
    """A run of acme with a story; globex has one, too, that has only been submitted."""
    submit_order(globex)
    run = submit_order(acme)
    with tenant_scope(acme):
        for number, (kind, step, data) in enumerate(HAPPENED, start=2):
            ExecutionEvent.objects.create(
                execution_id=parse_id(run), sequence=number, at=AT, kind=kind, step=step, data=data
            )
    return run


def explanation(run: str, query: str = "") -> str:
    return f"{RUNS}/{run}/explanation{query}"


def test_the_story_is_told_in_order(run: str, acme: TenantRef) -> None:
    for client in (program(acme, role=Role.VIEWER), member(acme, Role.VIEWER)):
        body = client.get(explanation(run)).json()
        assert [event["text"] for event in body["results"]] == TOLD
        assert body["results"][1] == {
            "sequence": 2, "at": "2026-03-04T10:02:11.120000Z", "kind": "placement.began", "step": "",
            "text": TOLD[1],
        }  # fmt: skip
        assert (body["after"], body["has_more"], body["state"]) == (6, False, "queued")
        assert body["now"].startswith("The run has waited for a slot since ")


def test_it_is_read_in_pieces_each_with_how_the_run_stands(run: str, acme: TenantRef) -> None:
    client = program(acme)
    with tenant_scope(acme):
        Execution.objects.filter(pk=parse_id(run)).update(
            state="failed", outcome="failed", code="CATALOGUE_MISSING", message="Nobody has it.", finished_at=AT,
        )  # fmt: skip
    level = "Its level of isolation is shared: the tenant requires it."
    now = f"The run failed with CATALOGUE_MISSING: Nobody has it. {level}"
    piece = client.get(explanation(run, "?after=1&page_size=2")).json()
    assert [event["text"] for event in piece["results"]] == TOLD[1:3]
    assert (piece["after"], piece["has_more"]) == (3, True)
    assert (piece["state"], piece["now"]) == ("failed", now)
    end = client.get(explanation(run, "?after=6")).json()
    assert end == {"after": 6, "has_more": False, "results": [], "state": "failed", "now": now}


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", f"after={2**64}", "page_size=0", "page_size=1001", "colour=red"]
)  # fmt: skip
def test_a_wrong_query_is_refused(run: str, acme: TenantRef, query: str) -> None:
    body = problem(program(acme).get(explanation(run, f"?{query}")), 400, "invalid_input")
    assert body["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


def test_another_tenants_run_is_not_found(run: str, globex: TenantRef) -> None:
    for client in (program(globex), member(globex, Role.VIEWER)):
        problem(client.get(explanation(run)), 404, "not_found")


def test_who_may_not_view_runs_is_told_nothing(run: str, acme: TenantRef) -> None:
    problem(member(acme, None).get(explanation(run)), 401, "not_authenticated")


def test_what_is_no_id_is_refused(run: str, acme: TenantRef) -> None:
    problem(program(acme).get(explanation("exec_1")), 400, "invalid_input")
