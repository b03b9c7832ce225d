"""Sweep what dead workers have left on this machine and in Redis.

Timing: background-worker, every 20 s.
Model: sync, in each worker.
Guarantee: at-least-once; safe in several places.
Failure: logged, and tried again; none of its parts stops another.
"""

import logging

from executions.worker.boot import WorkerBoot
from executions.worker.lanes import sweep_lanes
from executions.worker.loops.periodic import Periodic
from resources.runtimes.faults import reported

logger = logging.getLogger(__name__)


class Housekeeping(Periodic):
    """Runs until the worker stops."""

    def __init__(self, boot: WorkerBoot) -> None:
        super().__init__("housekeeping", period=boot.clocks.housekeeping)
        self._boot = boot

    def turn(self) -> None:
        """End orphaned runtimes, remove their folders, delete lanes without a worker."""
        for level, backend in self._boot.backends.items():
            with reported(f"what runtimes of level {level} have left was not swept"):
                backend.sweep()
        sweep_lanes()
