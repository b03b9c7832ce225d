"""Writing why a run waits: once, while it is queued, and the first claim clears it."""

import pytest

from executions.states import ExecutionState
from executions.transitions.claim import claim_step
from executions.transitions.end_waiting import end_waiting
from executions.transitions.explain_waiting import explain_waiting
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, everything_of, make_run, run_of

pytestmark = pytest.mark.usefixtures("neighbour")


def test_the_first_reason_stays(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        assert explain_waiting(run_id, "first")
        assert not explain_waiting(run_id, "second")
    assert run_of(acme, run_id).message == "first"
    assert events_of(acme, run_id) == ["execution.queued"]


def test_the_first_claim_clears_it(acme: TenantRef, placed: Placement) -> None:
    with tenant_scope(acme):
        assert explain_waiting(placed.execution_id, "why")
        claim_step(placed, "one", worker="w1@test")
        assert run_of(acme, placed.execution_id).message == ""
        assert not explain_waiting(placed.execution_id, "why")


def test_nothing_is_said_of_a_run_that_has_ended(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        end_waiting(run_id, ExecutionState.FAILED, code="", message="")
        before = everything_of(acme)
        assert not explain_waiting(run_id, "why")
    assert everything_of(acme) == before


def test_nor_of_another_tenants(acme: TenantRef, globex: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(globex):
        assert not explain_waiting(run_id, "why")
    assert run_of(acme, run_id).message == ""
