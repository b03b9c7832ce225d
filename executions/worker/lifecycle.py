"""From `celery -A orchestrator worker` to a worker of ours: Celery's signals of a worker's life.

Celery swallows what a receiver raises, and a worker that is not registered would idle for ever: so it exits.

Timing: background-worker; worker_shutting_down runs inside a signal handler and only raises a number.
Model: sync.
Guarantee: the worker consumes the lane of its boot and no other queue.
Failure: a worker that cannot start exits with 2.
"""

import logging
import sys
from typing import Any

import celery.signals
from django.conf import settings
from django.db import Error as DatabaseError
from kombu import Exchange, Queue

from executions.worker.boot import WorkerBoot
from executions.worker.clocks import Clocks
from executions.worker.worker import WorkerProcess, current, is_worker, set_current
from foundation.errors import IsolaneError
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.registry import build_backends

EXIT_UNAVAILABLE = 2
logger = logging.getLogger(__name__)


def connect() -> None:
    """Listen to Celery's signals; called by the composition root."""
    celery.signals.celeryd_init.connect(_build, dispatch_uid="executions.worker.init")
    celery.signals.celeryd_after_setup.connect(_select_lane, dispatch_uid="executions.worker.setup")
    celery.signals.worker_ready.connect(_register, dispatch_uid="executions.worker.ready")
    celery.signals.worker_shutting_down.connect(_drain, dispatch_uid="executions.worker.draining")
    celery.signals.worker_shutdown.connect(_shut_down, dispatch_uid="executions.worker.shutdown")


def _build(*, instance: Any, **_: Any) -> None:
    if not (settings.ENV.database_url and settings.ENV.redis_url):
        # Without addresses the libraries would try their own defaults, for ever.
        sys.stderr.write(
            "No platform runs here: start one with make up, or set DATABASE_URL and REDIS_URL.\n"
        )
        sys.exit(EXIT_UNAVAILABLE)
    boot = WorkerBoot(
        node_name=instance.hostname,
        capacity=settings.WORKER_CAPACITY,
        backends=build_backends(settings.RUNTIMES),
        clocks=Clocks(lease=settings.LEASE_SECONDS, drain_grace=settings.DRAIN_GRACE_SECONDS),
    )
    # Two plain workers on one host would share a name; Celery's own default is made unique per boot.
    if instance.hostname.startswith("celery@"):
        boot.node_name = f"w{boot.id.hex[:6]}@{instance.hostname.removeprefix('celery@')}"
        instance.hostname = boot.node_name
    worker = WorkerProcess(boot)
    set_current(worker)
    worker.watch_for_drain()


def _select_lane(*, instance: Any, **_: Any) -> None:
    """Consume this boot's lane and nothing else."""
    queues = instance.app.amqp.queues
    lane = current().boot.lane
    queues.add(Queue(lane, Exchange(""), routing_key=lane))
    queues.select([lane])


def _register(**_: Any) -> None:
    """Register the worker, or exit."""
    try:
        current().register()
    except (IsolaneError, RuntimeStartError, DatabaseError) as error:
        logger.critical("the worker cannot start: %s", error)
        sys.exit(EXIT_UNAVAILABLE)
    except Exception:
        logger.critical("the worker cannot start", exc_info=True)
        sys.exit(EXIT_UNAVAILABLE)


def _drain(**_: Any) -> None:
    """Runs inside the signal handler; a second signal comes here, too."""
    if is_worker():
        current().drain()


def _shut_down(**_: Any) -> None:
    """The pool is empty."""
    if is_worker():
        current().shutdown()
