"""The fence: a placement that is over, or was another's, writes nothing at all; and asking again is bounded."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import InterfaceError, OperationalError

from executions.semantics.decisions import StepDecision
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, StepState
from executions.transitions.append_output import append_output
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import Claim, claim_step
from executions.transitions.close import close_execution
from executions.transitions.fence import fetch_repeatedly
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import everything_of
from tests.integration.executions.transitions.runs import attempt

END = PlacementEnd(reason=EndReason.WORKER_LOST, lost=True)
ONWARD = StepDecision(state=StepState.SUCCEEDED, next_step="two")
pytestmark = pytest.mark.usefixtures("neighbour")

WRITES: dict[str, Callable[[Placement], object]] = {
    "claim": lambda run: isinstance(claim_step(run, "one", worker="w1@test"), Claim),
    "checkpoint": lambda run: write_checkpoint(run, attempt(), ONWARD),
    "output": lambda run: append_output(run, "one", 1, lines=(), fraction=0.5, text=""),
    "outcome": lambda run: set_outcome(run, ExecutionState.FAILED, code="", message=""),
    "close": close_execution,
    "hand back": lambda run: hand_back(run, END),
    "restart": lambda run: restart(run, reason=EndReason.RUNTIME_ENDED),
}


def prepare(tenant: TenantRef, placement: Placement, what: str) -> None:
    """Bring a placed run to where the write would be let in."""
    with tenant_scope(tenant):
        if what != "claim":
            claim_step(placement, "one", worker="w1@test")
        if what == "close":
            set_outcome(placement, ExecutionState.FAILED, code="", message="")


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize("other", [{"epoch": 0}, {"epoch": 2}, {"boot": uuid4()}])
def test_another_placement_writes_nothing(
    acme: TenantRef, placed: Placement, what: str, other: dict[str, Any]
) -> None:
    prepare(acme, placed, what)
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not WRITES[what](replace(placed, **other))
        assert everything_of(acme) == before
        assert WRITES[what](placed)


@pytest.mark.parametrize("what", WRITES)
def test_nor_does_another_tenant(
    acme: TenantRef, globex: TenantRef, placed: Placement, what: str
) -> None:
    prepare(acme, placed, what)
    before = everything_of(acme)
    with tenant_scope(globex):
        assert not WRITES[what](placed)
    assert everything_of(acme) == before


@pytest.mark.parametrize("what", set(WRITES) - {"close"})
def test_nor_one_whose_slot_was_given_away(acme: TenantRef, placed: Placement, what: str) -> None:
    prepare(acme, placed, what)
    with tenant_scope(acme):
        assert hand_back(placed, END)
        before = everything_of(acme)
        assert not WRITES[what](placed)
    assert everything_of(acme) == before


# --- asking again
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_it_is_asked_again_while_it_may_be(database: None, error: type[Exception]) -> None:
    asked: list[int] = []

    def fetch() -> str | None:
        asked.append(1)
        if len(asked) < 3:
            raise error("away")
        return "found"

    assert fetch_repeatedly(fetch, lambda: True) == "found"
    assert len(asked) == 3


def test_and_then_the_error_is_raised(database: None) -> None:
    tries = iter([True, True, False])

    def fetch() -> str | None:
        raise OperationalError("away")

    with pytest.raises(OperationalError):
        fetch_repeatedly(fetch, lambda: next(tries))
    assert list(tries) == []


def test_other_errors_are_not_repeated(database: None) -> None:
    def fetch() -> str | None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fetch_repeatedly(fetch, lambda: True)
