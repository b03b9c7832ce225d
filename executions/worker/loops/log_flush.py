"""The loop that writes the output of steps while they run."""

from executions.worker.boot import WorkerBoot
from executions.worker.loops.periodic import Periodic
from foundation.logs import bound
from tenants.scope import keep_connections


class LogFlushLoop(Periodic):
    """Runs until the worker stops, beside the lease loop, which must not wait for it."""

    def __init__(self, boot: WorkerBoot) -> None:
        super().__init__("log_flush", period=boot.clocks.log_flush)
        self._boot = boot

    def turn(self) -> None:
        """Write the output that has come since the last turn."""
        keep_connections()
        for context in self._boot.contexts.all():
            if context.attempt_log is not None:
                with bound(context.log_ids):
                    context.attempt_log.flush()
