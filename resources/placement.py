"""A placement: the stay of one execution on one worker boot, from admission to the runtime."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

PlacementKey = tuple[UUID, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Names the run, the number of the placement and the boot that holds it.

    Execution, epoch and boot are the fence: a writer that names others gets no row.
    """

    tenant_id: int
    execution_id: UUID
    epoch: int
    boot: UUID
    worker: str  # the node name of that boot, for people
    lane: str  # the queue of that boot

    @property
    def key(self) -> PlacementKey:
        """Return what a context of this placement is found by."""
        return (self.execution_id, self.epoch)

    def parameters(self) -> dict[str, Any]:
        """Return the values that the fence compares."""
        return {"execution": self.execution_id, "epoch": self.epoch, "boot": self.boot}
