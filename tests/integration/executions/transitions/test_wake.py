"""Waking: what is due and waits for its time goes on, or ends if nothing of it is left; once."""

from functools import partial

import pytest

from executions.states import ExecutionState, TicketState
from executions.transitions.wake import wake
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import due_of, everything_of, run_of, steps_of, ticket_of
from tests.integration.executions.threads import at_once
from tests.integration.executions.transitions.runs import ask, make_due, park, pause

pytestmark = pytest.mark.usefixtures("neighbour")


def wake_up(tenant: TenantRef, run: Placement) -> ExecutionState | None:
    with tenant_scope(tenant):
        return wake(run.execution_id)


@pytest.fixture
def paused(acme: TenantRef, claimed: Placement) -> Placement:
    """A run that waits for a time, without a slot; one step is left."""
    pause(acme, claimed)
    park(acme, claimed)
    return claimed


def test_it_is_queued_to_go_on(acme: TenantRef, paused: Placement) -> None:
    make_due(paused)
    before = ticket_of(paused.execution_id)
    assert wake_up(acme, paused) == ExecutionState.QUEUED
    run, ticket = run_of(acme, paused.execution_id), ticket_of(paused.execution_id)
    assert (run.state, run.outcome, run.wake_at, run.finished_at) == ("queued", "", None, None)
    assert run.next_step == "two"
    assert before is not None
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    assert ticket.waiting_since > before.waiting_since  # behind those that wait already
    assert due_of(paused.execution_id) is None


def test_with_nothing_left_it_has_succeeded(acme: TenantRef, claimed: Placement) -> None:
    pause(acme, claimed, next_step="")
    park(acme, claimed)
    make_due(claimed)
    assert wake_up(acme, claimed) == ExecutionState.SUCCEEDED
    run = run_of(acme, claimed.execution_id)
    assert (run.state, run.outcome, run.wake_at) == ("succeeded", "succeeded", None)
    assert run.finished_at is not None
    assert (ticket_of(claimed.execution_id), due_of(claimed.execution_id)) == (None, None)


def test_not_before_its_time(acme: TenantRef, paused: Placement) -> None:
    before = everything_of(acme)
    assert wake_up(acme, paused) is None
    assert everything_of(acme) == before


def test_not_one_that_waits_for_a_person(acme: TenantRef, claimed: Placement) -> None:
    ask(acme, claimed)
    park(acme, claimed)
    make_due(claimed)
    before = everything_of(acme)
    assert wake_up(acme, claimed) is None
    assert everything_of(acme) == before
    assert steps_of(acme, claimed.execution_id)["one"] == "suspended"


def test_not_another_tenants(acme: TenantRef, globex: TenantRef, paused: Placement) -> None:
    make_due(paused)
    before = everything_of(acme)
    assert wake_up(globex, paused) is None
    assert everything_of(acme) == before


def test_once(acme: TenantRef, paused: Placement) -> None:
    make_due(paused)
    woken = at_once([partial(wake_up, acme, paused)] * 2)
    assert sorted(woken, key=str) == [None, ExecutionState.QUEUED]
