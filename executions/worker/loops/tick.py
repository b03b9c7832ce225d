"""The tick: wake-ups, admission, reaping, stranded runs and deletions, in every worker, one at a time.

Timing: background-worker, in a thread with its own connection: it goes on when all step threads are busy and when
Redis is away. Model: sync. Guarantee: at-least-once; each part may run twice. Failure: logged, tried again.
"""

from django.conf import settings

from executions.placement.dispatch import admit_and_send
from executions.services.offboarding import advance_deletions
from executions.services.unplaceable import settle_stranded
from executions.services.waking import wake_due
from executions.worker.boot import WorkerBoot
from executions.worker.locks import advisory_lock
from executions.worker.loops.periodic import Periodic
from executions.worker.loops.reaper import reap

TICK_LOCK = 7_231_003
SILENT_SECONDS = 5  # nothing that a tick does takes so long; a worker that was stopped in it must not stop all others


class Tick(Periodic):
    """Runs until the worker stops."""

    def __init__(self, machine: WorkerBoot) -> None:
        super().__init__("tick")
        self._machine = machine

    def turn(self) -> None:
        """Do what is due, unless another worker is at it."""
        with advisory_lock(TICK_LOCK, silent_s=SILENT_SECONDS) as held:
            if not held:
                return
            # Admission before what others may take time for, or run into.
            admit_and_send()
            if wake_due():
                admit_and_send()
            if self._machine.may_reap(settings.LEASE_SECONDS) and reap(self._machine.node_name):
                admit_and_send()
            settle_stranded()
            advance_deletions()
