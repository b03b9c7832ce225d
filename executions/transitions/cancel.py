"""Cancelling: a waiting run ends at once, a placed one is asked to."""

from typing import NamedTuple
from uuid import UUID

from executions.states import ExecutionState, TicketState
from executions.transitions.end_waiting import end_waiting
from executions.transitions.events import EVENT_COUNT, EVENTS
from isolane.results import Code
from tenants.statement import Statement, compose


class PlacedTicketRow(NamedTuple):
    """The ticket of a run that its worker is asked to stop, now or before."""

    execution_id: UUID


_LOCKED_TICKET = f"""fence AS (
    SELECT execution_id, cancel_requested FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND state = '{TicketState.PLACED}' FOR NO KEY UPDATE
)"""  # noqa: S608 - a constant

_MARKED_TICKET = """ticket AS (
    UPDATE public.placement_ticket t SET cancel_requested = true
    FROM fence WHERE t.execution_id = fence.execution_id AND NOT fence.cancel_requested
    RETURNING t.execution_id
)"""

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'execution.cancel_requested', '', jsonb_strip_nulls(jsonb_build_object(
               'actor', nullif(%(actor)s::text, ''), 'message', %(message)s::text))
)"""

_TOLD_RUN = f"""run AS (
    UPDATE executions_execution e SET last_event = e.last_event + {EVENT_COUNT}
    FROM ticket WHERE e.id = ticket.execution_id AND e.outcome = ''
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

# Locks:   the ticket, the run.
# Guard:   the ticket is placed; for the event, nobody has asked before and the run has no outcome.
# Writes:  the ticket: its worker is asked to end the run.
# Events:  execution.cancel_requested, which names the one who asked first. The close reads the run's message there:
#          until then the run's own says other things.
# Returns: the ticket, also if it was asked before; no row if it is not placed.
CANCEL_PLACED = Statement(
    "cancel_placed",
    compose(
        _LOCKED_TICKET,
        _MARKED_TICKET,
        _HAPPENED,
        _TOLD_RUN,
        EVENTS,
        then="SELECT execution_id FROM fence",
    ),
    parameters=("execution", "actor", "message"),
    row=PlacedTicketRow,
)


def cancel(execution_id: UUID, *, message: str, actor: str = "") -> ExecutionState | None:
    """Cancelled if it waited, running if its worker was asked to stop it, none if it has already ended."""
    asked = {"execution": execution_id, "message": message, "actor": actor}
    # Between the two statements a waiting ticket may be placed or a placed one handed back: look again.
    for _ in range(3):
        if end_waiting(
            execution_id, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message
        ):
            return ExecutionState.CANCELLED
        if CANCEL_PLACED.fetch(asked):
            return ExecutionState.RUNNING
    return None
