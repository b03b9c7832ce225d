"""The resource records of a run, over HTTP."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from executions.models import Execution, ResourceRecord
from executions.semantics.resource_tracker import Disposition
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_run
from tests.integration.tenants.web import problem, program

AT = datetime(2026, 1, 1, tzinfo=UTC)


def held(tenant: TenantRef, run: UUID, number: int, ended: Disposition, error: str = "") -> None:
    with tenant_scope(tenant):
        ResourceRecord.objects.create(
            execution_id=run,
            epoch=1,
            resource_id=f"database_{number:032x}",
            name="db",
            type="database",
            definition="billing",
            step="one",
            opened_at=AT,
            closed_at=AT + timedelta(seconds=number) if ended else None,
            ended=ended.value,
            error=error,
        )


@pytest.fixture
def run(acme: TenantRef, boot: WorkerBoot) -> UUID:
    return make_run(acme)


def test_every_handle_is_listed_with_how_it_ended(
    acme: TenantRef, globex: TenantRef, run: UUID
) -> None:
    held(acme, run, 1, Disposition.DISPOSED)
    held(acme, run, 2, Disposition.KILLED, "it hung")
    held(acme, run, 3, Disposition.FAILED, "no route")
    body = program(acme).get(f"/api/v1/executions/exec_{run}/resources").json()
    assert (body["execution_id"], body["tenant_id"]) == (f"exec_{run}", acme.schema)
    assert body["balance"] == {
        "allocated": 2,
        "disposed": 2,
        "open": 0,
        "failed": 1,
        "ended": {"disposed": 1, "killed": 1},
        "clean": True,
    }
    shown = [(row["ended"], row["duration_s"], row["error"]) for row in body["results"]]
    assert shown == [
        ("disposed", 1.0, ""),
        ("killed", 2.0, "it hung"),
        ("failed", 3.0, "no route"),
    ]
    assert body["results"][0]["step"] == "one"


def test_a_run_that_has_ended_with_something_left_is_counted_and_listed(
    acme: TenantRef, globex: TenantRef, run: UUID
) -> None:
    held(acme, run, 1, Disposition.DISPOSED)
    held(acme, run, 2, Disposition.OPEN, "the remote server is away")
    assert program(acme).get("/api/v1/executions/unclean").json() == {"total": 0, "results": []}
    with tenant_scope(acme):
        Execution.objects.filter(pk=run).update(state=ExecutionState.RUNNING)
        Execution.objects.filter(pk=run).update(
            state=ExecutionState.SUCCEEDED, outcome=ExecutionState.SUCCEEDED, finished_at=AT
        )
    body = program(acme).get("/api/v1/executions/unclean").json()
    assert body["total"] == 1
    (left,) = body["results"]
    assert (left["execution_id"], left["error"]) == (f"exec_{run}", "the remote server is away")
    balance = program(acme).get(f"/api/v1/executions/exec_{run}/resources").json()["balance"]
    assert (balance["open"], balance["clean"]) == (1, False)
    assert program(globex).get("/api/v1/executions/unclean").json()["total"] == 0


def test_another_tenants_ledger_is_not_found(run: UUID, globex: TenantRef) -> None:
    answer = program(globex).get(f"/api/v1/executions/exec_{run}/resources")
    assert problem(answer, 404, "not_found")["field"] == "id"
