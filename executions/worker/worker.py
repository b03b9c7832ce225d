"""The worker of this process: its boot, links, loops, closer pool and drain.

Timing: background-worker; Celery's signals call it, in the order built, ready, draining, shut down.
Model: sync; each loop is a thread.
Guarantee: a boot is registered after its lane is consumed, and ends with its lane.
Failure: a worker without node descriptions or database is not registered; without its lane it ends.
"""

import logging
import os
import threading
import time

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from executions.placement.models import Worker
from executions.placement.registry import register, stop_placing, store_catalogue
from executions.semantics.reasons import EndReason
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.drain import Drain
from executions.worker.links.connection_events import write_last_connections
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.admission import AdmissionLoop
from executions.worker.loops.closer_pool import CloserPool
from executions.worker.loops.housekeeping import Housekeeping
from executions.worker.loops.lane_probe import LaneProbeLoop
from executions.worker.loops.lease import EXIT_FENCED, LeaseLoop
from executions.worker.loops.log_flush import LogFlushLoop
from executions.worker.loops.periodic import Periodic
from executions.worker.loops.reaper import end_boot
from executions.worker.loops.sweeper import Sweeper, sweep
from executions.worker.loops.tick import Tick
from foundation.ready_file import write_ready_file
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.faults import reported
from tenants.scope import close_kept_connections, platform_scope

STOPPED = PlacementEnd(reason=EndReason.WORKER_STOPPED)
logger = logging.getLogger(__name__)


class WorkerProcess:
    """Owns everything that makes this process a worker."""

    def __init__(self, boot: WorkerBoot) -> None:
        self.boot = boot
        self.links = LinkRunner(boot)
        self._drain = Drain(boot)
        # Until the boot is registered there are none.
        self._lease: LeaseLoop | None = None
        self._closer_pool: CloserPool | None = None
        self._loops: list[Periodic | AdmissionLoop] = []

    def watch_for_drain(self) -> None:
        """Start the thread that waits for a request to drain."""
        self._drain.start()

    def register(self) -> None:
        """Register the boot and start its loops: from now on runs are placed here."""
        boot = self.boot
        availability = {level: backend.availability() for level, backend in boot.backends.items()}
        levels = [level for level, found in availability.items() if found.ok]
        if not levels:
            reasons = "; ".join(f"{level}: {found.reason}" for level, found in availability.items())
            raise RuntimeStartError(f"no isolation level is available ({reasons})")
        for level, found in availability.items():
            if not found.ok:
                extra = {"event": "LEVEL_UNAVAILABLE", "level": level}
                logger.warning("level %s is not offered: %s", level, found.reason, extra=extra)
        catalogue = boot.backends[levels[0]].describe()
        asked_at = time.monotonic()
        with platform_scope():
            register(
                boot=boot.id,
                node_name=boot.node_name,
                lane=boot.lane,
                capacity=boot.capacity,
                levels=levels,
                catalogue=store_catalogue(catalogue),
            )
        boot.renewed(asked_at)
        self._start_loops()
        write_ready_file(settings.ENV.ready_file, boot.node_name)
        logger.info("worker placeable", extra={"event": "WORKER_READY", "worker": boot.node_name})

    def _start_loops(self) -> None:
        boot = self.boot
        admission = AdmissionLoop()
        self._lease, self._closer_pool = LeaseLoop(boot), CloserPool()
        self._loops = [
            self._lease,
            Tick(boot),
            LogFlushLoop(boot),
            Sweeper(period=boot.clocks.sweep),
            admission,
            LaneProbeLoop(
                boot.lane_probe, boot.lane, boot.clocks, on_unreachable=self._on_unreachable
            ),
            Housekeeping(boot),
        ]
        boot.request_admission, boot.submit_close = admission.request, self._closer_pool.submit
        for loop in self._loops:
            loop.start()

    def drain(self) -> None:
        """Ask the worker to end. Safe in a signal handler: it raises a number and does nothing else."""
        self._drain.requests += 1

    def _on_unreachable(self) -> None:
        """Leave without Celery: its consumer, and perhaps its shutdown, hangs.

        Not if the worker ends anyway: then Celery has stopped its consumer.
        """
        if self.boot.draining.is_set():
            return
        threading.Thread(target=self._leave, name="unreachable", daemon=True).start()

    def _leave(self) -> None:
        try:
            self.drain()
            self._drain.join()
            self.shutdown()
        finally:
            os._exit(EXIT_FENCED)

    def shutdown(self) -> None:
        """Hand the rest back and end this boot, without waiting for the lease to lapse. The pool is empty by now."""
        boot = self.boot
        if self._lease is not None:
            self._lease.hand_back_idle()
            self._drain.wait_until_idle(boot.clocks.hand_back)
        for loop in reversed(self._loops):
            loop.stop()
        # A close under way ends with its runtime: another worker takes the rest over when the lease lapses.
        for backend in boot.backends.values():
            with reported("runtimes not ended"):
                backend.stop()
        if self._closer_pool is not None:
            self._closer_pool.stop()
        if self._lease is None:
            return  # never registered, so there is nothing to end, and perhaps no server to ask
        write_last_connections(*boot.contexts.all())
        try:
            self._end_boot()
        except DatabaseError as error:
            reason = str(error).strip().partition("\n")[0]
            logger.warning(
                "not handed over, so the lease must lapse: %s", reason, extra={"event": "NOT_ENDED"}
            )
        finally:
            connection.close()
            close_kept_connections()

    def _end_boot(self) -> None:
        boot = self.boot
        with platform_scope():
            stop_placing(boot.id)  # the lease loop may not have come to it
            worker = Worker.objects.filter(boot=boot.id).first()
        if worker is None:
            return
        end_boot(worker, STOPPED)
        with platform_scope():
            is_left = Worker.objects.filter(boot=boot.id).exists()
        if is_left:  # another process was placing a run here at this very moment
            end_boot(worker, STOPPED)
        sweep(boot.clocks.last_sweep)  # it may have been the last worker


_current: WorkerProcess | None = None


def set_current(worker: WorkerProcess | None) -> None:
    """Make this process a worker; none makes it any other process again."""
    global _current  # noqa: PLW0603 - Celery's signals and tasks are functions: they must find it somewhere
    _current = worker


def current() -> WorkerProcess:
    """Return the worker of this process; raises in a process that is not a worker."""
    if _current is None:
        raise RuntimeError(
            "this process is not a worker: start one with 'celery -A orchestrator worker'"
        )
    return _current


def is_worker() -> bool:
    """Say whether this process is a worker."""
    return _current is not None
