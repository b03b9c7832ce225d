"""The orderly end of a worker: running steps may finish, the rest goes on elsewhere at once.

Timing: background-worker; a signal handler sets a number and nothing else, this thread acts on it. Model: sync.
Guarantee: what is between two steps is handed over, what runs may end within the grace time, what still runs then is
lost here and resumed elsewhere. Failure: what could not be handed over is taken over when the lease lapses.
"""

import threading
import time

from django.conf import settings

from executions.worker.boot import WorkerBoot
from executions.worker.loops.lease import kill_runtimes

LOOK_SECONDS = 0.1
AT_ONCE = 2  # the second request has no patience


class Drain(threading.Thread):
    """Waits for the first request, then drains the worker."""

    def __init__(self, machine: WorkerBoot) -> None:
        super().__init__(name="drain", daemon=True)
        self._machine = machine
        self.requests = 0  # raised by whoever wants the worker to end, also in a signal handler

    @property
    def at_once(self) -> bool:
        """Whether nobody is waited for any more."""
        return self.requests >= AT_ONCE

    def run(self) -> None:
        """Let running steps finish within the grace time, unless asked again."""
        while not self.requests:
            time.sleep(LOOK_SECONDS)
        self._machine.draining.set()
        self.rests(settings.DRAIN_GRACE_SECONDS)
        while self._machine.contexts.any_in_flight():
            kill_runtimes(self._machine)  # again and again: one may have been opening
            time.sleep(LOOK_SECONDS)

    def rests(self, seconds: float) -> bool:
        """Wait so long for every link and ending that is under way; whether none is any more."""
        deadline = time.monotonic() + seconds
        while self._machine.contexts.any_in_flight():
            if self.at_once or time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_SECONDS / 2)
        return True
