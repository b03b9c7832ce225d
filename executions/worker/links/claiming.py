"""Claim a step for a link.

Timing: background-worker.
Model: sync.
Guarantee: at-most-once; a step is claimed by one link of the placement that holds its run.
Failure: bubble; a database that does not answer is asked again while the lease is fresh, then raises.
"""

from collections.abc import Callable
from contextlib import suppress

from django.db import Error as DatabaseError

from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.refusal import note_refusal
from resources.placement import Placement


def try_claim(
    placement: Placement, path: str, *, may_repeat: Callable[[], bool]
) -> Claim | Refusal:
    """Claim a step, or return the refusal, which the run's events tell of if another worker has ended the placement.

    Called in the scope of the run. `may_repeat`: called, and waited for, after the database did not answer.
    """
    claimed = claim_step(placement, path, worker=placement.worker, may_repeat=may_repeat)
    if claimed is Refusal.STALE:
        # Refused it is, also if the database went away meanwhile.
        with suppress(DatabaseError):
            note_refusal(placement, "claim", path)
    return claimed
