"""executions.transitions.placement_end: what a statement is told of the end of a placement."""

from uuid import UUID

from executions.semantics.reasons import EndReason
from executions.transitions.placement_end import END_PARAMETERS, OVER, PlacementEnd
from resources.placement import Placement

PLACEMENT = Placement(
    tenant_id=1,
    execution_id=UUID(int=1),
    epoch=2,
    boot=UUID(int=3),
    worker="w1@test",
    lane="lane.3",
)


def test_the_fence_the_reason_and_who_ended_it() -> None:
    lost = PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by="w2@test")
    assert lost.parameters(PLACEMENT) == {
        "execution": UUID(int=1), "epoch": 2, "boot": UUID(int=3), "reason": "worker_lost", "lost": True,
        "by": "w2@test", "worker": "w1@test",
    }  # fmt: skip


def test_they_are_what_the_statements_declare() -> None:
    assert set(OVER.parameters(PLACEMENT)) == set(END_PARAMETERS)
