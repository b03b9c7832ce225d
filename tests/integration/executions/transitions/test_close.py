"""Closing: a run with an outcome becomes terminal and its slot is free; fenced, and once."""

from dataclasses import replace
from uuid import uuid4

import pytest

from executions.models import Execution
from executions.states import EXECUTION_TRANSITIONS, TERMINAL_EXECUTION, ExecutionState
from isolane.results import Code
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    events_of,
    everything_of,
    run_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.transitions.runs import close, fail, give_back

pytestmark = pytest.mark.usefixtures("neighbour")


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


@pytest.mark.parametrize("outcome", sorted(TERMINAL_EXECUTION))
def test_a_run_becomes_only_what_its_state_may_become(
    acme: TenantRef, placed: Placement, outcome: ExecutionState
) -> None:
    """No run that never began has succeeded: then its slot stays as it is, too."""
    with tenant_scope(acme):
        Execution.objects.update(outcome=outcome)
    before = everything_of(acme)
    if outcome in EXECUTION_TRANSITIONS[ExecutionState.QUEUED]:
        assert close(acme, placed) == outcome
    else:
        assert close(acme, placed) is None
        assert everything_of(acme) == before
