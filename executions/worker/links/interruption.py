"""A link that ends without a result: Celery ignores its message, and the worker's loop settles its placement."""

from enum import StrEnum

from celery.exceptions import Ignore


class InterruptReason(StrEnum):
    """The code that a link is ignored with; each refusal of a claim is one of them."""

    DUPLICATE = "duplicate"  # another link has claimed the step, or the run is ending
    STALE = "stale"  # the placement is over, or this worker may claim nothing now
    DONE = "done"  # the step ended under an older placement
    HANDED_BACK = "handed_back"  # the loop hands the placement back
    RUNTIME_ENDED = "runtime_ended"  # between two steps; the run goes on in a new context
    RUNTIME_LOST = "runtime_lost"  # its runtime was ended, since the lease was not renewed in time
    LEASE_NOT_FRESH = "lease_not_fresh"  # another worker may have the run by now
    PLACEMENT_OVER = "placement_over"  # the context was lost meanwhile
    FENCE_REFUSED = "fence_refused"  # another worker has the run
    DATABASE_AWAY = "database_away"  # for so long that another worker may have the run


class LinkInterrupted(Ignore):
    """Ends a link without a result: Celery publishes no next link and shows neither success nor failure."""

    def __init__(self, reason: InterruptReason) -> None:
        super().__init__(reason.value)
        self.reason = reason
