"""The loop that writes what steps say while they run."""

from executions.worker.identity import ids
from executions.worker.machine import Machine
from executions.worker.periodic import Periodic
from orchestrator.core.logs import bound


class JournalLoop(Periodic):
    """Runs until the worker stops; beside the lease's loop, which must not wait for it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__("journal")
        self._machine = machine

    def turn(self) -> None:
        """Write what has come since the last turn."""
        for context in self._machine.contexts.all():
            if context.journal is not None:
                with bound(ids(context.placement)):
                    context.journal.flush()
