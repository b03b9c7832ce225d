"""From `celery -A orchestrator worker` to a worker of ours: lane, registry, loop, tick, drain.

Timing: background-worker. Model: sync; Celery's signals set it up, worker_shutting_down only sets a flag (it runs
inside a signal handler). Guarantee: a boot is registered after its lane is consumed, and ends with its lane.
Failure: a worker that cannot describe its nodes or reach the database does not start.
"""

import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import celery.signals
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from kombu import Exchange, Queue

from executions.placement.models import Worker
from executions.placement.registry import register, stop_placing, store_catalogue
from executions.semantics.reasons import EndReason
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.drain import Drain
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
from foundation.errors import IsolaneError
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.faults import reported
from resources.runtimes.registry import build_backends
from tenants.scope import platform_scope

EXIT_UNAVAILABLE = 2
HAND_BACK_SECONDS = 5.0  # well within the lease
LAST_SWEEP_SECONDS = 3.0
logger = logging.getLogger(__name__)


class _Process:
    """What this worker process has; nothing in every other process."""

    machine: WorkerBoot | None = None
    links: LinkRunner | None = None
    lease: LeaseLoop | None = None
    tick: Tick | None = None
    journals: LogFlushLoop | None = None
    admission: AdmissionLoop | None = None
    sweeper: Sweeper | None = None
    endings: CloserPool | None = None
    echo: LaneProbeLoop | None = None
    housekeeping: Housekeeping | None = None
    drain: Drain | None = None


def current_machine() -> WorkerBoot:
    """This worker's boot."""
    if _Process.machine is None:
        raise RuntimeError(
            "this process is not a worker: start one with 'celery -A orchestrator worker'"
        )
    return _Process.machine


def current_links() -> LinkRunner:
    """This worker's links."""
    if _Process.links is None:
        raise RuntimeError(
            "this process is not a worker: start one with 'celery -A orchestrator worker'"
        )
    return _Process.links


def connect() -> None:
    """Listen to Celery's signals; called by the composition root."""
    celery.signals.celeryd_init.connect(_on_init, dispatch_uid="executions.worker.init")
    celery.signals.celeryd_after_setup.connect(_on_setup, dispatch_uid="executions.worker.setup")
    celery.signals.worker_ready.connect(_on_ready, dispatch_uid="executions.worker.ready")
    celery.signals.worker_shutting_down.connect(
        _on_shutting_down, dispatch_uid="executions.worker.draining"
    )
    celery.signals.worker_shutdown.connect(_on_shutdown, dispatch_uid="executions.worker.shutdown")


def _on_init(*, instance: Any, **_: Any) -> None:
    if not (settings.ENV.database_url and settings.ENV.redis_url):
        # Without addresses the libraries would try their own defaults, for ever.
        sys.stderr.write(
            "No platform runs here: start one with make up, or set DATABASE_URL and REDIS_URL.\n"
        )
        sys.exit(EXIT_UNAVAILABLE)
    machine = WorkerBoot(
        node_name=instance.hostname,
        capacity=settings.WORKER_CAPACITY,
        backends=build_backends(settings.RUNTIMES),
    )
    # Two plain workers on one host would share a name; Celery's own default is made unique per boot.
    if instance.hostname.startswith("celery@"):
        machine.node_name = f"w{machine.boot.hex[:6]}@{instance.hostname.removeprefix('celery@')}"
        instance.hostname = machine.node_name
    _Process.machine, _Process.links = machine, LinkRunner(machine)
    _Process.drain = Drain(machine)
    _Process.drain.start()


def _on_setup(*, instance: Any, **_: Any) -> None:
    """Consume this boot's lane and nothing else."""
    queues = instance.app.amqp.queues
    lane = current_machine().lane
    queues.add(Queue(lane, Exchange(""), routing_key=lane))
    queues.select([lane])


def _on_ready(**_: Any) -> None:
    """Celery swallows what a receiver raises, and a worker that is not registered would idle for ever: exit instead."""
    try:
        _register(current_machine())
    except (IsolaneError, RuntimeStartError, DatabaseError) as error:
        logger.critical("the worker cannot start: %s", error)
        sys.exit(EXIT_UNAVAILABLE)
    except Exception:
        logger.critical("the worker cannot start", exc_info=True)
        sys.exit(EXIT_UNAVAILABLE)


def _register(machine: WorkerBoot) -> None:
    availability = {level: backend.availability() for level, backend in machine.backends.items()}
    levels = [level for level, found in availability.items() if found.ok]
    if not levels:
        reasons = "; ".join(f"{level}: {found.reason}" for level, found in availability.items())
        raise RuntimeStartError(f"no isolation level is available ({reasons})")
    catalogue = machine.backends[levels[0]].describe()
    asked_at = time.monotonic()
    with platform_scope():
        register(
            boot=machine.boot,
            node_name=machine.node_name,
            lane=machine.lane,
            capacity=machine.capacity,
            levels=levels,
            catalogue=store_catalogue(catalogue),
        )
    machine.renewed(asked_at)
    _Process.lease, _Process.tick = LeaseLoop(machine), Tick(machine)
    _Process.journals, _Process.admission = LogFlushLoop(machine), AdmissionLoop()
    _Process.sweeper, _Process.endings = Sweeper(), CloserPool()
    _Process.echo = LaneProbeLoop(machine.echo, machine.lane, on_deaf=_on_deaf)
    _Process.housekeeping = Housekeeping(machine)
    machine.admit, machine.later = _Process.admission.ask, _Process.endings.ask
    for loop in _loops():
        loop.start()
    if settings.ENV.ready_file:
        said = f"{os.getpid()} {machine.node_name}"
        Path(settings.ENV.ready_file).write_text(said, encoding="utf-8")
    logger.info("worker placeable", extra={"event": "WORKER_READY", "worker": machine.node_name})


def _loops() -> list[Periodic | AdmissionLoop]:
    """Those that were started, the lease first."""
    loops = (
        _Process.lease,
        _Process.tick,
        _Process.journals,
        _Process.sweeper,
        _Process.admission,
        _Process.echo,
        _Process.housekeeping,
    )
    return [loop for loop in loops if loop is not None]


def _on_shutting_down(**_: Any) -> None:
    """Runs inside the signal handler, so it raises a number and nothing else. A second signal comes here, too."""
    if _Process.drain is not None:
        _Process.drain.requests += 1


def _on_deaf() -> None:
    """The consumer does not hear its lane, and may not hear Celery's own shutdown either: leave without it.

    Not a worker that ends anyway: Celery has stopped its consumer.
    """
    if current_machine().draining.is_set():
        return
    threading.Thread(target=_leave_deaf, name="deaf", daemon=True).start()


def _leave_deaf() -> None:
    try:
        if _Process.drain is not None:
            _Process.drain.requests += 1
            _Process.drain.join()
        _on_shutdown()
    finally:
        os._exit(EXIT_FENCED)


def _on_shutdown(**_: Any) -> None:
    """The pool is empty: hand the rest back and end this boot, without waiting for the lease to lapse."""
    if _Process.machine is None:
        return
    machine = _Process.machine
    if _Process.lease is not None and _Process.drain is not None:
        _Process.lease.hand_back_idle()
        _Process.drain.rests(HAND_BACK_SECONDS)
    for loop in reversed(_loops()):
        loop.stop()
    # What is being torn down ends with its runtime: others take the rest over when the lease lapses.
    for backend in machine.backends.values():
        with reported("runtimes not ended"):
            backend.stop()
    if _Process.endings is not None:
        _Process.endings.stop()
    if _Process.lease is None:
        return  # never registered, so there is nothing to end, and perhaps no server to ask
    try:
        _end_own_boot(machine)
    except DatabaseError as error:
        reason = str(error).strip().partition("\n")[0]
        logger.warning(
            "not handed over, so the lease must lapse: %s", reason, extra={"event": "NOT_ENDED"}
        )
    finally:
        connection.close()


def _end_own_boot(machine: WorkerBoot) -> None:
    with platform_scope():
        stop_placing(machine.boot)  # the loop may not have come to it
        worker = Worker.objects.filter(boot=machine.boot).first()
    if worker is None:
        return
    end_boot(worker, PlacementEnd(reason=EndReason.WORKER_STOPPED))
    with platform_scope():
        is_left = Worker.objects.filter(boot=machine.boot).exists()
    if is_left:  # somebody was placing a run here at this very moment
        end_boot(worker, PlacementEnd(reason=EndReason.WORKER_STOPPED))
    sweep(LAST_SWEEP_SECONDS)  # it may have been the last worker
