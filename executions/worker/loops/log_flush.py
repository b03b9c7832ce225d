"""The loop that writes what steps say while they run."""

from executions.worker.boot import WorkerBoot
from executions.worker.log_ids import log_ids
from executions.worker.loops.periodic import Periodic
from foundation.logs import bound


class LogFlushLoop(Periodic):
    """Runs until the worker stops; beside the lease's loop, which must not wait for it."""

    def __init__(self, machine: WorkerBoot) -> None:
        super().__init__("journal")
        self._machine = machine

    def turn(self) -> None:
        """Write what has come since the last turn."""
        for context in self._machine.contexts.all():
            if context.journal is not None:
                with bound(log_ids(context.placement)):
                    context.journal.flush()
