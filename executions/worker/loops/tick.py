"""The tick: admission, wake-ups, reaping, runs that no worker can take, deletions; in one worker at a time.

Timing: background-worker, in a thread with its own connection; neither busy steps nor Redis hold it up.
Model: sync.
Guarantee: at-least-once; each part may run twice.
Failure: logged, tried again.
"""

from executions.placement.dispatch import admit_and_send
from executions.services.offboarding import advance_deletions
from executions.services.unplaceable import settle_unplaceable
from executions.services.waking import wake_due
from executions.worker.boot import WorkerBoot
from executions.worker.locks import advisory_lock
from executions.worker.loops.periodic import Periodic
from executions.worker.loops.reaper import reap

TICK_LOCK = 7_231_003


class Tick(Periodic):
    """Runs until the worker stops."""

    def __init__(self, boot: WorkerBoot) -> None:
        super().__init__("tick", period=boot.clocks.tick)
        self._boot = boot

    def turn(self) -> None:
        """Do what is due, unless another worker is at it."""
        # The lock of a worker that is stopped in its tick goes with its session: it must not stop all others.
        with advisory_lock(TICK_LOCK, silent_s=self._boot.clocks.tick_silence) as held:
            if not held:
                return
            # Admission first: what follows may take time, or fail.
            admit_and_send()
            if wake_due():
                admit_and_send()
            if self._boot.may_reap() and reap(self._boot.node_name):
                admit_and_send()
            settle_unplaceable()
            advance_deletions()
