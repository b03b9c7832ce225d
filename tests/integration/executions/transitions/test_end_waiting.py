"""Ending a run that holds no slot: with its steps, its question and the time it waited for."""

from functools import partial

import pytest

from executions.models import Approval
from executions.states import ExecutionState, StepState
from executions.transitions.end_waiting import end_waiting
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import due_of, everything_of, make_run, run_of, step_of, steps_of, ticket_of
from tests.integration.executions.threads import at_once
from tests.integration.executions.transitions.runs import ask, park, pause

CANCELLED, FAILED = ExecutionState.CANCELLED, ExecutionState.FAILED
pytestmark = pytest.mark.usefixtures("neighbour")


def end(tenant: TenantRef, run: Placement, outcome: ExecutionState = CANCELLED) -> bool:
    with tenant_scope(tenant):
        return end_waiting(run.execution_id, outcome, code="C", message="why")


@pytest.mark.parametrize(("outcome", "steps"), [(CANCELLED, "cancelled"), (FAILED, "skipped")])
def test_a_run_that_never_began(
    acme: TenantRef, boot: WorkerBoot, outcome: ExecutionState, steps: str
) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        assert end_waiting(run_id, outcome, code="C", message="why")
    run = run_of(acme, run_id)
    assert (run.state, run.outcome, run.code, run.message) == (outcome, outcome, "C", "why")
    assert (run.next_step, run.finished_at is None) == ("", False)
    assert steps_of(acme, run_id) == {"one": steps, "two": steps}
    assert step_of(acme, run_id, "one").code == ""
    assert ticket_of(run_id) is None


@pytest.mark.parametrize(
    ("outcome", "steps"),
    [
        (CANCELLED, {"one": "cancelled", "two": "cancelled"}),
        (FAILED, {"one": "failed", "two": "skipped"}),
    ],
)
def test_a_run_that_asks_a_person(
    acme: TenantRef, claimed: Placement, outcome: ExecutionState, steps: dict[str, str]
) -> None:
    ask(acme, claimed)
    park(acme, claimed)
    assert end(acme, claimed, outcome)
    run = run_of(acme, claimed.execution_id)
    assert (run.state, run.question, run.wake_at) == (outcome, "", None)
    assert steps_of(acme, claimed.execution_id) == steps
    step = step_of(acme, claimed.execution_id, "one")
    assert (step.code, step.message, step.retry_at) == ("C", "why", None)
    with tenant_scope(acme):
        asked = Approval.objects.get()
    assert (asked.state, asked.answered_by) == ("withdrawn", "")
    assert asked.answered_at is not None
    assert (ticket_of(claimed.execution_id), due_of(claimed.execution_id)) == (None, None)


def test_a_run_that_waits_for_a_time(acme: TenantRef, claimed: Placement) -> None:
    pause(acme, claimed)
    park(acme, claimed)
    assert end(acme, claimed)
    assert steps_of(acme, claimed.execution_id) == {
        "one": StepState.SUCCEEDED,
        "two": StepState.CANCELLED,
    }
    assert (ticket_of(claimed.execution_id), due_of(claimed.execution_id)) == (None, None)


def test_not_one_that_holds_a_slot(acme: TenantRef, claimed: Placement) -> None:
    before = everything_of(acme)
    assert not end(acme, claimed)
    assert everything_of(acme) == before


def test_not_another_tenants(acme: TenantRef, globex: TenantRef, claimed: Placement) -> None:
    pause(acme, claimed)
    park(acme, claimed)
    before = everything_of(acme)
    assert not end(globex, claimed)
    assert everything_of(acme) == before


def test_nor_into_what_its_state_may_not_become(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        assert not end_waiting(run_id, ExecutionState.SUCCEEDED, code="", message="")
    assert (run_of(acme, run_id).state, run_of(acme, run_id).outcome) == ("queued", "")


def test_once(acme: TenantRef, claimed: Placement) -> None:
    pause(acme, claimed)
    park(acme, claimed)
    assert sorted(at_once([partial(end, acme, claimed)] * 2)) == [False, True]
    before = everything_of(acme)
    assert not end(acme, claimed, FAILED)
    assert everything_of(acme) == before
