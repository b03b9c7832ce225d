"""The state of one worker boot.

Timing: background-worker.
Model: sync, shared by all threads of the process.
Guarantee: at-most-once; a worker whose lease is not fresh claims nothing.
Failure: none of its own; the caller acts on the answer.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from executions.placement.dispatch import admit_and_send
from executions.worker.clocks import Clocks
from executions.worker.lanes import lane_of
from executions.worker.links.contexts import Contexts
from executions.worker.loops.lane_probe import LaneProbe
from resources.placement import Placement
from resources.runtimes.base import RuntimeBackend


@dataclass(kw_only=True)
class WorkerBoot:
    """Shared by the pool's threads and the loops of this process."""

    node_name: str
    capacity: int
    backends: Mapping[str, RuntimeBackend]
    id: UUID = field(default_factory=uuid4)
    clocks: Clocks = field(default_factory=Clocks)
    contexts: Contexts = field(default_factory=Contexts)
    lane_probe: LaneProbe = field(init=False)
    draining: threading.Event = field(default_factory=threading.Event)
    # Called when a slot has become free.
    request_admission: Callable[[], None] = admit_and_send
    # Called with work that ends a placement, to be run in a thread that may wait.
    submit_close: Callable[[Callable[[], None]], None] = lambda work: work()
    renewed_at: float = field(default_factory=time.monotonic)
    renewing_since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.lane_probe = LaneProbe(unsure=self.clocks.unsure)

    @property
    def lane(self) -> str:
        """Return the queue of this boot; no other process ever consumes it."""
        return lane_of(self.id)

    def placement(self, tenant_id: int, execution_id: str, epoch: int) -> Placement:
        """Return the placement on this boot that the arguments of a link name."""
        return Placement(
            tenant_id=tenant_id,
            execution_id=UUID(execution_id),
            epoch=epoch,
            boot=self.id,
            worker=self.node_name,
            lane=self.lane,
        )

    def lease_is_fresh(self) -> bool:
        """Say whether no other worker can have stepped in; looked at right before every claim, OPEN and RUN."""
        return time.monotonic() - self.renewed_at < self.clocks.self_fence

    def may_claim(self) -> bool:
        """Say whether this worker may begin another step."""
        return not self.draining.is_set() and self.lease_is_fresh()

    def renewed(self, asked_at: float | None = None) -> None:
        """Note a renewal, by the time of its request: the answer may have taken long. A gap restarts the count."""
        at = time.monotonic() if asked_at is None else asked_at
        if not self.lease_is_fresh():
            self.renewing_since = at
        self.renewed_at = at
        for backend in self.backends.values():
            backend.keepalive(until=at + self.clocks.self_fence)

    def may_repeat(self) -> bool:
        """Wait a moment after the database did not answer; true while no other worker can have stepped in."""
        time.sleep(self.clocks.repeat)
        return self.lease_is_fresh()

    def may_reap(self) -> bool:
        """Reap only after one full lease of uninterrupted renewals: this worker may have been the one away."""
        return self.lease_is_fresh() and time.monotonic() - self.renewing_since >= self.clocks.lease
