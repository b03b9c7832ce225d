"""The fence: a placement, and the statement that proves it is still the valid one.

Timing: background-worker. Model: sync. Guarantee: at-most-once; a writer with an old epoch gets no row back.
Failure: a lost connection is tried once more; every statement here may be repeated without harm.
"""

from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connections

from resources.placement import Placement
from tenants.scope import ALIAS
from tenants.statement import Row, fetch_row

__all__ = [
    "FENCE",
    "FENCE_TO_RELEASE",
    "FENCE_UNLESS_CANCELLED",
    "LOCKED_RUN",
    "Placement",
    "fetch_repeatedly",
    "fetch_row",
]

# Statements begin with a CTE called `fence` over the ticket. Lock order: ticket, execution, step.
_FENCE = """
fence AS (
    SELECT execution_id, cancel_requested, coalesce(extract(epoch FROM deadline - now())::float8, time_left) AS left_s
    FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND epoch = %(epoch)s::int AND worker_id = %(boot)s::uuid
      AND state = 'placed'{condition}
    FOR {lock}
)"""
FENCE = _FENCE.format(condition="", lock="SHARE")
FENCE_UNLESS_CANCELLED = _FENCE.format(condition=" AND NOT cancel_requested", lock="SHARE")
FENCE_TO_RELEASE = _FENCE.format(condition=" AND NOT cancel_requested", lock="NO KEY UPDATE")
# The run is locked before its step is looked at, so that of two writers the second sees what the first has written.
LOCKED_RUN = """
locked AS (
    SELECT e.id, e.state, e.version, e.next_step, e.wake_at, e.question, e.announced_epoch <> %(epoch)s::int AS unseen
    FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.id = %(execution)s::uuid AND e.outcome = '' FOR NO KEY UPDATE OF e
)"""


def fetch_repeatedly(fetch: Callable[[], Row | None], may_repeat: Callable[[], bool]) -> Row | None:
    """Ask again for as long as the database does not answer and it may be asked; then raise.

    What asks must recognise its own earlier try, which may have been written before its answer was lost.
    """
    while True:
        try:
            return fetch()
        except (OperationalError, InterfaceError):
            connections[ALIAS].close()
            if not may_repeat():
                raise
