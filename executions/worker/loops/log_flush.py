"""The loop that writes the output of steps, and the connections of runs, while they run."""

from executions.worker.boot import WorkerBoot
from executions.worker.links.connection_events import write_new_connections
from executions.worker.loops.periodic import Periodic
from foundation.logs import bound
from tenants.scope import keep_connections


class LogFlushLoop(Periodic):
    """Runs until the worker stops, beside the lease loop, which must not wait for it."""

    def __init__(self, boot: WorkerBoot) -> None:
        super().__init__("log_flush", period=boot.clocks.log_flush)
        self._boot = boot

    def turn(self) -> None:
        """Write the output and the connections that have come since the last turn."""
        keep_connections()
        contexts = self._boot.contexts.all()
        for context in contexts:
            if context.attempt_log is not None:
                with bound(context.log_ids):
                    context.attempt_log.flush()
        # Afterwards: a record that cannot be written must keep no output.
        for context in contexts:
            with bound(context.log_ids):
                write_new_connections(context)
