"""A refusal is an event of the run if another worker has ended the placement, and nothing otherwise."""

from typing import Any

import pytest

from executions.models import ExecutionEvent
from executions.semantics.reasons import EndReason
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.refusal import note_refusal
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import everything_of
from tests.integration.executions.transitions.conftest import WORKER

LOST = PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by="w2@test")
pytestmark = pytest.mark.usefixtures("neighbour")


def last_event(tenant: TenantRef) -> tuple[str, str, dict[str, Any]]:
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.order_by("sequence").last()
    assert found is not None
    return found.kind, found.step, found.data


@pytest.mark.parametrize("what", ["claim", "checkpoint", "close"])
def test_a_worker_whose_placement_others_have_ended_is_refused_and_that_is_told(
    acme: TenantRef, globex: TenantRef, claimed: Placement, what: Any
) -> None:
    with tenant_scope(acme):
        hand_back(claimed, LOST)
        assert note_refusal(claimed, what, "one")
    data = {"epoch": 1, "worker": WORKER, "what": what}
    assert last_event(acme) == ("fence.refused", "one", data)
    with tenant_scope(globex):
        assert not note_refusal(claimed, what, "one")


def test_who_comes_late_to_what_it_ended_itself_was_not_refused(
    acme: TenantRef, claimed: Placement
) -> None:
    """A message that came twice, or an answer that was lost."""
    with tenant_scope(acme):
        hand_back(claimed, PlacementEnd(reason=EndReason.CLAIM_UNATTENDED, lost=True))
        before = everything_of(acme)
        assert not note_refusal(claimed, "claim", "one")
    assert everything_of(acme) == before


def test_a_placement_that_is_valid_was_not_refused(acme: TenantRef, claimed: Placement) -> None:
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not note_refusal(claimed, "close")
    assert everything_of(acme) == before


def test_each_refusal_is_told(acme: TenantRef, claimed: Placement) -> None:
    """A worker that tries twice was refused twice."""
    with tenant_scope(acme):
        hand_back(claimed, LOST)
        assert note_refusal(claimed, "checkpoint", "one")
        assert note_refusal(claimed, "close")
    assert last_event(acme)[2]["what"] == "close"
