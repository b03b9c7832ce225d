"""An outcome for a run in which no link is active: set once, under the valid placement, its close follows."""

from datetime import timedelta

import psycopg
import pytest
from django.db import transaction
from django.db.models.functions import Now

from executions.models import ExecutionEvent, Step
from executions.states import ExecutionState, StepState
from executions.transitions.claim import Claim, claim_step
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from isolane.results import Code
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    events_of,
    everything_of,
    make_placed,
    run_of,
    step_of,
    steps_of,
)
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.threads import in_thread
from tests.integration.executions.transitions.runs import close, fail, give_back, time_out

pytestmark = pytest.mark.usefixtures("neighbour")


def test_an_outcome_for_a_run_in_which_no_link_is_active(
    acme: TenantRef, claimed: Placement
) -> None:
    with tenant_scope(acme):
        assert set_outcome(
            claimed, ExecutionState.CANCELLED, code=Code.CANCELLED, message="by test"
        )
    run = run_of(acme, claimed.execution_id)
    assert (run.outcome, run.code, run.message) == ("cancelled", "CANCELLED", "by test")
    assert run.state == ExecutionState.RUNNING
    assert steps_of(acme, claimed.execution_id) == {"one": "cancelled", "two": "pending"}
    assert close(acme, claimed) == ExecutionState.CANCELLED
    assert steps_of(acme, claimed.execution_id)["two"] == StepState.CANCELLED


@pytest.mark.parametrize("state", [StepState.RUNNING, StepState.RETRYING])
@pytest.mark.parametrize("outcome", [ExecutionState.CANCELLED, ExecutionState.FAILED])
def test_the_step_that_it_ends_has_an_event_of_its_own(
    acme: TenantRef, claimed: Placement, outcome: ExecutionState, state: StepState
) -> None:
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=state, retry_at=Now() + timedelta(seconds=30))
        assert set_outcome(claimed, outcome, code="WORKER_LOST", message="")
        event = ExecutionEvent.objects.order_by("sequence").last()
    assert event is not None
    assert (event.kind, event.step) == (f"step.{outcome.value}", "one")
    cut = {"unbilled": True} if state is StepState.RUNNING else {}
    assert event.data == {"attempt": 1, "code": "WORKER_LOST", **cut}
    assert step_of(acme, claimed.execution_id, "one").retry_at is None
    assert close(acme, claimed) == outcome
    assert events_of(acme, claimed.execution_id)[-1] == f"execution.{outcome.value}"


def test_without_a_step_at_work_it_has_none(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        assert set_outcome(placement, ExecutionState.CANCELLED, code="", message="")
    assert events_of(acme, placement.execution_id) == ["execution.queued"]


@pytest.mark.parametrize("stale", [False, True])
def test_an_outcome_is_neither_replaced_nor_set_from_an_old_placement(
    acme: TenantRef, claimed: Placement, stale: bool
) -> None:
    if stale:
        give_back(acme, claimed)
    else:
        fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not set_outcome(claimed, ExecutionState.CANCELLED, code="", message="")
    assert everything_of(acme) == before


def test_an_outcome_waits_for_a_claim_under_way_and_ends_its_step(
    acme: TenantRef, boot: WorkerBoot, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    placement = make_placed(acme, boot)
    with tenant_scope(acme), transaction.atomic():
        assert isinstance(claim_step(placement, "one", worker="w1@test"), Claim)
        other = in_thread(lambda: time_out(acme, placement))
        wait_until_blocked(superuser)
    assert other.result(timeout=20)
    assert close(acme, placement) == ExecutionState.TIMED_OUT
    assert steps_of(acme, placement.execution_id) == {"one": "failed", "two": "skipped"}
    assert "step.failed" in events_of(acme, placement.execution_id)
