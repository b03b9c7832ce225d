"""The reaper: ends what lapsed workers have left behind.

Timing: background-worker, in the tick. Model: sync. Guarantee: at-least-once; safe in two places at once, since the
fence lets each placement be ended once. Failure: bubble; the next tick goes on where this one stopped.
"""

import logging

from celery import current_app
from kombu import Queue
from kombu.exceptions import OperationalError

from executions.placement.models import Worker
from executions.placement.workers import held_by, lapsed, remove
from executions.transitions.fence import Placement
from executions.worker.closing import end_without_link
from executions.worker.identity import ids
from orchestrator.core.logs import bound
from tenants.scope import platform_scope

logger = logging.getLogger(__name__)


def reap() -> int:
    """End the placements of every lapsed boot, then forget the boot and its lane."""
    with platform_scope():
        boots = lapsed()
    for worker in boots:
        end_boot(worker, reason="worker lost", lost=True)
    return len(boots)


def end_boot(worker: Worker, *, reason: str, lost: bool) -> None:
    """End a boot's placements, then the boot; a worker that stops does this for itself."""
    logger.warning(
        "ending worker: %s", reason, extra={"event": "WORKER_ENDED", "worker": worker.node_name}
    )
    with platform_scope():
        held = held_by(worker.boot)
    for ticket in held:
        placement = Placement(
            tenant_id=ticket.tenant_id,
            execution_id=ticket.execution_id,
            epoch=ticket.epoch,
            boot=worker.boot,
        )
        with bound(ids(placement)):
            end_without_link(placement, cancel=ticket.cancel_requested, reason=reason, lost=lost)
    with platform_scope():
        remove(worker.boot)
    _delete_lane(worker.lane)


def _delete_lane(lane: str) -> None:
    """Nobody will consume it again. Its messages are wake-ups only; what they were about has been placed anew.

    Redis drops a list with its last message; kombu's own delete leaves a queue without a binding as it is.
    """
    try:
        with current_app.connection_for_write() as connection:
            Queue(lane).bind(connection.default_channel).purge()
    except OperationalError:
        logger.warning("lane %s not deleted: the broker does not answer", lane)
