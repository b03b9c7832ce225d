"""The fence: the part of a statement that proves its placement is still the valid one. Close has a fence of its own.

Timing: background-worker.
Model: sync.
Guarantee: at-most-once; a writer with an old epoch gets no row back.
Failure: a lost connection is tried once more; every statement here may be repeated without harm.
"""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections

from executions.states import BEGUN_STEP, TicketState
from tenants.scope import ALIAS
from tenants.statement import text_set

Row = TypeVar("Row")

# Statements begin with a CTE called `fence` over the ticket. Lock order: ticket, run, step.
_FENCE = f"""fence AS (
    SELECT execution_id, cancel_requested, coalesce(extract(epoch FROM deadline - now())::float8, time_left) AS left_s
    FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND epoch = %(epoch)s::int AND worker_id = %(boot)s::uuid
      AND state = '{TicketState.PLACED}'"""  # noqa: S608 - a constant
_UNLESS_CANCELLED = " AND NOT cancel_requested"
FENCE = _FENCE + " FOR SHARE)"
FENCE_UNLESS_CANCELLED = _FENCE + _UNLESS_CANCELLED + " FOR SHARE)"
# For a statement that changes the ticket.
FENCE_TO_RELEASE = _FENCE + _UNLESS_CANCELLED + " FOR NO KEY UPDATE)"
FENCE_PARAMETERS = ("execution", "epoch", "boot")

# The run is locked before its step is looked at, so that of two writers the second sees what the first has written.
# `unannounced`: none of its events names this placement yet.
LOCKED_RUN = """locked AS (
    SELECT e.id, e.state, e.version, e.next_step, e.wake_at, e.question, e.last_log,
           e.announced_epoch <> %(epoch)s::int AS unannounced
    FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.id = %(execution)s::uuid AND e.outcome = '' FOR NO KEY UPDATE OF e
)"""

# The step that the run is at, as it is once the run is locked: a claim may have been under way when the statement
# began, and a look by its state would not find it. So the state is looked at afterwards.
LOCKED_STEPS = f"""begun AS (
    SELECT s.path, s.attempt, s.state FROM executions_step s JOIN locked ON s.execution_id = locked.id
    WHERE s.path = locked.next_step OR s.state = ANY({text_set(sorted(BEGUN_STEP))}) FOR NO KEY UPDATE OF s
)"""  # noqa: S608 - all constants


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
