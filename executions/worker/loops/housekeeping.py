"""What dead workers have left on this machine and in Redis.

Timing: background-worker, every 20 s. Model: sync, in each worker. Guarantee: at-least-once; safe in several places.
Failure: logged, and tried again; none of its parts stops another.
"""

import logging

from executions.worker.boot import WorkerBoot
from executions.worker.lanes import sweep_lanes
from executions.worker.loops.periodic import Periodic
from resources.runtimes.faults import reported

PERIOD_SECONDS = 20.0
logger = logging.getLogger(__name__)


class Housekeeping(Periodic):
    """Runs until the worker stops."""

    period_seconds = PERIOD_SECONDS

    def __init__(self, machine: WorkerBoot) -> None:
        super().__init__("housekeeping")
        self._machine = machine

    def turn(self) -> None:
        """End orphaned runtimes, remove their folders, delete lanes that nobody consumes."""
        for level, backend in self._machine.backends.items():
            with reported(f"what runtimes of level {level} have left was not swept"):
                backend.sweep()
        sweep_lanes()
