"""The end of a placement: closed when the run has an outcome, handed back when it has none, fenced either way."""

from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from django.db import transaction

from executions.blueprint.plan import plan
from executions.decisions import after_step
from executions.states import ExecutionState, StepState, TicketState
from executions.transitions.cancel import cancel
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.close import close_execution, hand_back, set_outcome
from executions.transitions.fence import Placement
from executions.worker.machine import Machine
from isolane.results import Code, StepResult
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    document,
    events_of,
    everything_of,
    make_placed,
    run_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.threads import in_thread

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def claimed(acme: TenantRef, machine: Machine) -> Placement:
    """A run whose first of two steps is claimed."""
    placement = make_placed(acme, machine)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
    return placement


def fail(tenant: TenantRef, placement: Placement, code: Code) -> None:
    """Write the checkpoint of a first step that failed."""
    result = StepResult.failed(step="one", attempt=1, code=code, message="")
    with tenant_scope(tenant):
        assert write_checkpoint(placement, result, after_step(plan(document()), result))


def close(tenant: TenantRef, placement: Placement) -> ExecutionState | None:
    with tenant_scope(tenant):
        return close_execution(placement)


def give_back(tenant: TenantRef, placement: Placement, *, lost: bool = True) -> bool:
    with tenant_scope(tenant):
        return hand_back(placement, reason="worker lost", lost=lost)


# --- close
@pytest.mark.parametrize(
    ("code", "ended", "steps"),
    [
        (Code.UNKNOWN_ERROR, "failed", {"one": "failed", "two": "skipped"}),
        (Code.TIMEOUT, "timed_out", {"one": "failed", "two": "skipped"}),
        (Code.CANCELLED, "cancelled", {"one": "cancelled", "two": "cancelled"}),
    ],
)
def test_closing_makes_the_run_terminal_and_frees_the_slot(
    acme: TenantRef, claimed: Placement, code: Code, ended: str, steps: dict[str, str]
) -> None:
    fail(acme, claimed, code)
    assert close(acme, claimed) == ended
    run = run_of(acme, claimed.execution_id)
    assert (run.state, run.next_step) == (ended, "")
    assert run.finished_at is not None
    assert steps_of(acme, claimed.execution_id) == steps
    assert ticket_of(claimed.execution_id) is None
    assert events_of(acme, claimed.execution_id)[-1] == f"execution.{ended}"


def test_closing_twice_writes_once(acme: TenantRef, claimed: Placement) -> None:
    fail(acme, claimed, Code.TIMEOUT)
    close(acme, claimed)
    before = everything_of(acme)
    assert close(acme, claimed) is None
    assert everything_of(acme) == before


def test_without_an_outcome_nothing_is_closed(acme: TenantRef, claimed: Placement) -> None:
    before = everything_of(acme)
    assert close(acme, claimed) is None
    assert everything_of(acme) == before


@pytest.mark.parametrize("other", [{"epoch": 2}, {"boot": uuid4()}])
def test_another_placement_closes_and_hands_back_nothing(
    acme: TenantRef, claimed: Placement, other: dict[str, object]
) -> None:
    wrong = replace(claimed, **other)  # type: ignore[arg-type]
    before = everything_of(acme)
    assert not give_back(acme, wrong)
    assert everything_of(acme) == before
    fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    assert close(acme, wrong) is None
    assert everything_of(acme) == before


def test_another_tenant_closes_and_hands_back_nothing(
    acme: TenantRef, globex: TenantRef, claimed: Placement
) -> None:
    assert not give_back(globex, claimed)
    fail(acme, claimed, Code.TIMEOUT)
    assert close(globex, claimed) is None
    assert run_of(acme, claimed.execution_id).state == ExecutionState.RUNNING


# --- hand back
@pytest.mark.parametrize("lost", [True, False])
def test_handing_back_raises_the_epoch_and_resets_the_running_step(
    acme: TenantRef, claimed: Placement, lost: bool
) -> None:
    waiting_since = getattr(ticket_of(claimed.execution_id), "waiting_since", None)
    assert give_back(acme, claimed, lost=lost)
    ticket = ticket_of(claimed.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.worker_id, ticket.epoch) == (TicketState.WAITING, None, 2)
    # A drained run keeps its place in the queue; a lost one, which may be to blame, goes to its end.
    assert (ticket.waiting_since == waiting_since) is not lost
    assert run_of(acme, claimed.execution_id).losses == int(lost)
    assert run_of(acme, claimed.execution_id).state == ExecutionState.QUEUED
    assert steps_of(acme, claimed.execution_id) == {"one": "pending", "two": "pending"}
    assert events_of(acme, claimed.execution_id)[-1] == "placement.ended"


def test_a_run_that_was_never_claimed_is_handed_back_too(acme: TenantRef, machine: Machine) -> None:
    placement = make_placed(acme, machine)
    assert give_back(acme, placement)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_steps_that_are_done_stay_done(acme: TenantRef, claimed: Placement) -> None:
    result = StepResult.succeeded(step="one", attempt=1, output={"n": 1})
    with tenant_scope(acme):
        write_checkpoint(claimed, result, after_step(plan(document()), result))
    assert give_back(acme, claimed)
    assert steps_of(acme, claimed.execution_id) == {"one": "succeeded", "two": "pending"}
    assert run_of(acme, claimed.execution_id).next_step == "two"


def test_a_run_with_an_outcome_is_not_handed_back(acme: TenantRef, claimed: Placement) -> None:
    fail(acme, claimed, Code.TIMEOUT)
    before = everything_of(acme)
    assert not give_back(acme, claimed)
    assert everything_of(acme) == before


def test_a_run_that_is_to_be_cancelled_is_not_handed_back(
    acme: TenantRef, claimed: Placement
) -> None:
    """Admission would never place it again and nobody would end it."""
    with tenant_scope(acme):
        cancel(claimed.execution_id, message="")
    before = everything_of(acme)
    assert not give_back(acme, claimed)
    assert everything_of(acme) == before


def test_handing_back_waits_for_a_checkpoint_under_way_and_sees_its_outcome(
    acme: TenantRef, claimed: Placement, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    """The reaper comes while the lapsed worker's last checkpoint is being committed."""
    with tenant_scope(acme), transaction.atomic():
        result = StepResult.failed(step="one", attempt=1, code=Code.TIMEOUT, message="")
        assert write_checkpoint(claimed, result, after_step(plan(document()), result))
        other = in_thread(lambda: give_back(acme, claimed))
        wait_until_blocked(superuser)
    assert not other.result(timeout=20)
    assert close(acme, claimed) == ExecutionState.TIMED_OUT


# --- outcome without a link
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
