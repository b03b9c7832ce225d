"""What one worker boot is made of.

Timing: background-worker. Model: sync, shared by all threads of the process. Guarantee: at-most-once; a worker whose
lease is not fresh claims nothing. Failure: none of its own; whoever asks acts on the answer.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from executions.dispatch import admit_and_send
from executions.worker.contexts import Contexts
from resources.runtimes.base import RuntimeBackend

SELF_FENCE_SECONDS = (
    10  # without a renewal for this long, a worker stops itself before others may step in (15 s)
)


@dataclass(kw_only=True)
class Machine:
    """Shared by the pool's threads, the lease loop and the tick of this process."""

    node_name: str
    capacity: int
    backends: Mapping[str, RuntimeBackend]
    boot: UUID = field(default_factory=uuid4)
    contexts: Contexts = field(default_factory=Contexts)
    draining: threading.Event = field(default_factory=threading.Event)
    admit: Callable[[], None] = admit_and_send  # asked for when a slot has become free
    later: Callable[[Callable[[], None]], None] = lambda work: work()  # in a thread that may wait
    renewed_at: float = field(default_factory=time.monotonic)
    renewing_since: float = field(default_factory=time.monotonic)

    @property
    def lane(self) -> str:
        """The queue of this boot; nobody else ever consumes it."""
        return f"lane.{self.boot}"

    def lease_is_fresh(self) -> bool:
        """Looked at right before every claim."""
        return time.monotonic() - self.renewed_at < SELF_FENCE_SECONDS

    def renewed(self) -> None:
        """Remember a renewal; a gap starts the count anew."""
        now = time.monotonic()
        if not self.lease_is_fresh():
            self.renewing_since = now
        self.renewed_at = now

    def may_reap(self, lease_seconds: float) -> bool:
        """Who was away itself must not judge others: only after a lease time without a gap."""
        return self.lease_is_fresh() and time.monotonic() - self.renewing_since >= lease_seconds
