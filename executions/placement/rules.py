"""The rule of placement: a snapshot of waiting runs and free workers in, decisions out. Pure.

In the order of waiting, each run goes to the emptiest worker that fits it, unless its tenant already holds as many
slots as its quota allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingTicket:
    """A run that may go next."""

    execution_id: UUID
    tenant_id: int
    isolation: str
    catalogue: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeWorker:
    """A worker that may take more."""

    boot: UUID
    node_name: str
    lane: str
    free: int
    catalogue: str
    isolation_levels: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything that a decision depends on."""

    waiting: Sequence[WaitingTicket]
    workers: Sequence[FreeWorker]
    free_by_tenant: Mapping[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementDecision:
    """Place this run on that worker."""

    execution_id: UUID
    boot: UUID
    worker: str  # its node name
    lane: str


def decide(snapshot: Snapshot) -> list[PlacementDecision]:
    """Return a placement for each run that fits a worker."""
    free_slots = {worker.boot: worker.free for worker in snapshot.workers}
    free_quota = dict(snapshot.free_by_tenant)
    decisions = []
    for ticket in snapshot.waiting:
        worker = _emptiest_fit(ticket, snapshot.workers, free_slots)
        if worker is None or free_quota.get(ticket.tenant_id, 0) < 1:
            continue
        free_slots[worker.boot] -= 1
        free_quota[ticket.tenant_id] -= 1
        decisions.append(
            PlacementDecision(
                execution_id=ticket.execution_id,
                boot=worker.boot,
                worker=worker.node_name,
                lane=worker.lane,
            )
        )
    return decisions


def _emptiest_fit(
    ticket: WaitingTicket, workers: Sequence[FreeWorker], free_slots: Mapping[UUID, int]
) -> FreeWorker | None:
    fitting = [
        worker
        for worker in workers
        if free_slots[worker.boot] > 0
        and worker.catalogue == ticket.catalogue
        and ticket.isolation in worker.isolation_levels
    ]
    # The emptiest first: two workers share the load instead of one idling beside a full one.
    return max(fitting, key=lambda worker: free_slots[worker.boot], default=None)
