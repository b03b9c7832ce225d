"""What one worker boot is made of.

Timing: background-worker. Model: sync, shared by all threads of the process. Guarantee: at-most-once; a worker whose
lease is not fresh claims nothing. Failure: none of its own; whoever asks acts on the answer.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from executions.placement.dispatch import admit_and_send
from executions.worker.lanes import lane_of
from executions.worker.links.context import Contexts
from executions.worker.loops.lane_probe import LaneProbe
from resources.runtimes.base import RuntimeBackend

SELF_FENCE_SECONDS = (
    10  # without a renewal for this long, a worker stops itself before others may step in (15 s)
)

REPEAT_SECONDS = 0.2  # between two tries to write something


@dataclass(kw_only=True)
class WorkerBoot:
    """Shared by the pool's threads, the lease loop and the tick of this process."""

    node_name: str
    capacity: int
    backends: Mapping[str, RuntimeBackend]
    boot: UUID = field(default_factory=uuid4)
    contexts: Contexts = field(default_factory=Contexts)
    echo: LaneProbe = field(default_factory=LaneProbe)
    draining: threading.Event = field(default_factory=threading.Event)
    admit: Callable[[], None] = admit_and_send  # asked for when a slot has become free
    later: Callable[[Callable[[], None]], None] = lambda work: work()  # in a thread that may wait
    renewed_at: float = field(default_factory=time.monotonic)
    renewing_since: float = field(default_factory=time.monotonic)

    @property
    def lane(self) -> str:
        """The queue of this boot; nobody else ever consumes it."""
        return lane_of(self.boot)

    def lease_is_fresh(self) -> bool:
        """Looked at right before every claim, OPEN and RUN."""
        return time.monotonic() - self.renewed_at < SELF_FENCE_SECONDS

    def renewed(self, asked_at: float | None = None) -> None:
        """Remember a renewal, by when it was asked for: the answer may have taken long. A gap starts the count anew."""
        at = time.monotonic() if asked_at is None else asked_at
        if not self.lease_is_fresh():
            self.renewing_since = at
        self.renewed_at = at
        for backend in self.backends.values():
            backend.keepalive(until=at + SELF_FENCE_SECONDS)

    def may_repeat(self) -> bool:
        """The database did not answer: wait a moment. As long as the lease holds, nobody else has stepped in."""
        time.sleep(REPEAT_SECONDS)
        return self.lease_is_fresh()

    def may_reap(self, lease_seconds: float) -> bool:
        """Who was away itself must not judge others: only after a lease time without a gap."""
        return self.lease_is_fresh() and time.monotonic() - self.renewing_since >= lease_seconds
