"""Every placement, loss, hand-over and refusal is an event of the run, once."""

from dataclasses import replace
from typing import Any

import pytest

from executions.models import Execution, ExecutionEvent
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.cancel import cancel
from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from isolane.results import Code
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, make_placed, place

LOST = PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by="w2@test")
pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return replace(make_placed(acme, boot), worker=boot.node_name)


def claim(tenant: TenantRef, placement: Placement) -> Claim | Refusal:
    with tenant_scope(tenant):
        return claim_step(placement, "one", worker=placement.worker)


def told(tenant: TenantRef, placement: Placement) -> list[tuple[str, dict[str, Any]]]:
    """The events after the first, numbered without a gap."""
    events_of(tenant, placement.execution_id)
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution_id=placement.execution_id)
        return list(found.order_by("sequence").values_list("kind", "data"))[1:]


def again(tenant: TenantRef, placement: Placement, boot: WorkerBoot) -> Placement:
    placed = place(tenant, placement.execution_id, boot)
    return replace(placed, worker=boot.node_name)


def test_the_first_claim_of_a_placement_tells_of_it_and_no_other_does(
    acme: TenantRef, boot: WorkerBoot, placement: Placement
) -> None:
    claim(acme, placement)
    claim(acme, placement)
    with tenant_scope(acme):
        hand_back(placement, LOST)
    second = again(acme, placement, boot)
    claim(acme, second)
    assert [each for each in told(acme, placement) if each[0] == "placement.began"] == [
        ("placement.began", {"epoch": 1, "worker": "w1@test"}),
        ("placement.began", {"epoch": 2, "worker": "w1@test"}),
    ]


def test_a_new_context_on_the_same_worker_is_a_placement_of_its_own(
    acme: TenantRef, placement: Placement
) -> None:
    claim(acme, placement)
    with tenant_scope(acme):
        assert restart(placement, reason=EndReason.RUNTIME_ENDED) == 2
    claim(acme, replace(placement, epoch=2))
    assert [kind for kind, _ in told(acme, placement)] == [
        "placement.began", "step.started", "context.restarted", "placement.began", "step.started",
    ]  # fmt: skip


def test_a_placement_that_was_never_claimed_is_told_of_when_it_ends(
    acme: TenantRef, placement: Placement
) -> None:
    with tenant_scope(acme):
        hand_back(placement, PlacementEnd(reason=EndReason.WORKER_DRAINING))
    assert told(acme, placement) == [
        ("placement.began", {"epoch": 1, "worker": "w1@test"}),
        (
            "placement.handed_over",
            {"epoch": 1, "reason": EndReason.WORKER_DRAINING, "worker": "w1@test"},
        ),
    ]


@pytest.mark.parametrize("claimed", [True, False])
def test_a_loss_that_ends_the_run_is_told_of_before_the_end(
    acme: TenantRef, placement: Placement, claimed: bool
) -> None:
    if claimed:
        claim(acme, placement)
    with tenant_scope(acme):
        cancel(placement.execution_id, message="")
        set_outcome(placement, ExecutionState.CANCELLED, code=Code.CANCELLED, message="")
        assert close_execution(placement, ending=LOST) == ExecutionState.CANCELLED
    kinds = [kind for kind, _ in told(acme, placement)]
    assert kinds.count("placement.began") == 1
    assert told(acme, placement)[-2:] == [
        (
            "placement.lost",
            {"epoch": 1, "reason": EndReason.WORKER_LOST, "worker": "w1@test", "by": "w2@test"},
        ),
        ("execution.cancelled", {"epoch": 1}),
    ]


def test_a_loss_while_a_run_falls_asleep_is_told_of_too(
    acme: TenantRef, placement: Placement
) -> None:
    claim(acme, placement)
    with tenant_scope(acme):
        Execution.objects.update(wake_at="2999-01-01T00:00:00Z")
        assert hand_back(placement, LOST) == ExecutionState.WAITING
    assert [kind for kind, _ in told(acme, placement)][-2:] == [
        "placement.lost",
        "execution.waiting",
    ]
