"""The reaper: ends the placements of workers whose lease has lapsed.

Timing: background-worker, in the tick.
Model: sync.
Guarantee: at-least-once; safe in two places at once, since the fence lets each placement be ended once.
Failure: logged; the next tick tries again.
"""

import logging

from django.db import Error as DatabaseError

from executions.placement.models import Worker
from executions.placement.registry import HeldPlacement, held_by, lapsed, remove
from executions.semantics.reasons import EndReason
from executions.transitions.placement_end import PlacementEnd
from executions.worker.lanes import delete_lane
from executions.worker.links.closing import end_without_link
from executions.worker.log_ids import log_ids
from foundation.logs import bound
from tenants.scope import platform_scope

logger = logging.getLogger(__name__)


def reap(by: str) -> int:
    """End the placements of every lapsed boot, then remove the boot and its lane; `by`: the worker that does so."""
    with platform_scope():
        boots = lapsed()
    for worker in boots:
        try:
            end_boot(worker, PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by=by))
        except DatabaseError:
            raise
        except Exception:
            # One that cannot be ended must not keep all others from it.
            about = {"event": "NOT_ENDED", "worker": worker.node_name}
            logger.exception("worker not ended", extra=about)
    return len(boots)


def end_boot(worker: Worker, ending: PlacementEnd) -> None:
    """End a boot's placements, then the boot; a worker that stops does this for itself."""
    logger.warning(
        "ending worker: %s",
        ending.reason,
        extra={"event": "WORKER_ENDED", "worker": worker.node_name},
    )
    with platform_scope():
        placements = held_by(worker)
    for held in placements:
        with bound(log_ids(held.placement)):
            _end_alone(held, ending)
    with platform_scope():
        remove(worker.boot)
    delete_lane(worker.lane)


def _end_alone(held: HeldPlacement, ending: PlacementEnd) -> None:
    """End one placement; a fault in it stops no other, and the next turn tries again."""
    placement = held.placement
    try:
        end_without_link(placement, ending, cancel=held.cancel_requested, overdue=held.overdue)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("placement not ended", extra={"event": "NOT_ENDED", **log_ids(placement)})
