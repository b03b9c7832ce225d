"""Cancelling: a waiting run ends at once, a placed one is asked to."""

from uuid import UUID

from executions.states import ExecutionState
from executions.transitions.fence import fetch_row
from executions.transitions.waiting import end_waiting
from isolane.results import Code

# Who asked first is who is named. Close reads it there: until then the run's own message says other things.
CANCEL_PLACED = """
WITH fence AS (
    SELECT execution_id, cancel_requested FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND state = 'placed' FOR NO KEY UPDATE
), ticket AS (
    UPDATE public.placement_ticket t SET cancel_requested = true
    FROM fence WHERE t.execution_id = fence.execution_id AND NOT fence.cancel_requested
    RETURNING t.execution_id
), run AS (
    UPDATE executions_execution e SET last_event = e.last_event + 1
    FROM ticket WHERE e.id = ticket.execution_id AND e.outcome = ''
    RETURNING e.id, e.last_event
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'execution.cancel_requested', '',
           jsonb_strip_nulls(jsonb_build_object(
               'actor', nullif(%(actor)s::text, ''), 'message', %(message)s::text))
    FROM run
)
SELECT execution_id FROM fence"""


def cancel(execution_id: UUID, *, message: str, actor: str = "") -> ExecutionState | None:
    """Cancelled if it waited, running if its worker was asked to stop it, none if it has already ended."""
    asked = {"execution": execution_id, "message": message, "actor": actor}
    # Between the two statements a waiting ticket may be placed or a placed one handed back: look again.
    for _ in range(3):
        if end_waiting(
            execution_id, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message
        ):
            return ExecutionState.CANCELLED
        if fetch_row(CANCEL_PLACED, asked):
            return ExecutionState.RUNNING
    return None
