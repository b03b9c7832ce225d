"""The orderly end of a worker: running steps may finish, other placements are handed back at once.

Steps that are still running after the grace time are killed; their placements are handed back at shutdown.

Timing: background-worker; a signal handler raises a number and nothing else, this thread acts on it.
Model: sync.
Guarantee: running steps may finish within the grace time; placements between two steps are handed back.
Failure: a placement that could not be handed back is reaped when the lease lapses.
"""

import threading
import time

from executions.worker.boot import WorkerBoot
from executions.worker.loops.lease import kill_runtimes

LOOK_SECONDS = 0.1
AT_ONCE = 2  # the second request does not wait


class Drain(threading.Thread):
    """Waits for the first request, then drains the worker."""

    def __init__(self, boot: WorkerBoot) -> None:
        super().__init__(name="drain", daemon=True)
        self._boot = boot
        self.requests = (
            0  # raised by everything that wants the worker to end, also in a signal handler
        )

    @property
    def at_once(self) -> bool:
        """Say whether no step is waited for any more."""
        return self.requests >= AT_ONCE

    def run(self) -> None:
        """Let running steps finish within the grace time, unless there is a second request."""
        while not self.requests:
            time.sleep(LOOK_SECONDS)
        self._boot.draining.set()
        self.wait_until_idle(self._boot.clocks.drain_grace)
        while self._boot.contexts.any_in_flight():
            kill_runtimes(self._boot)  # again and again: one may have been opening
            time.sleep(LOOK_SECONDS)

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait at most so long for every link and close under way; says whether none is left."""
        deadline = time.monotonic() + seconds
        while self._boot.contexts.any_in_flight():
            if self.at_once or time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_SECONDS / 2)
        return True
