"""Cancelling: a waiting run ends at once, a placed one is asked to."""

from uuid import UUID

from executions.states import ExecutionState
from executions.transitions.fence import fetch_row

CANCEL_WAITING = """
WITH fence AS (
    DELETE FROM public.placement_ticket WHERE execution_id = %(execution)s AND state <> 'placed' RETURNING execution_id
), run AS (
    UPDATE executions_execution e
    SET state = 'cancelled', outcome = 'cancelled', code = 'CANCELLED', message = %(message)s, next_step = '',
        finished_at = now(), last_event = e.last_event + 1
    FROM fence WHERE e.id = fence.execution_id AND e.outcome = ''
    RETURNING e.id, e.last_event
), steps AS (
    UPDATE executions_step s SET state = 'cancelled', finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state IN ('pending', 'retrying', 'suspended')
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'execution.cancelled', '', '{}' FROM run
)
SELECT id FROM run"""

CANCEL_PLACED = """
UPDATE public.placement_ticket SET cancel_requested = true
WHERE execution_id = %(execution)s AND state = 'placed' RETURNING execution_id"""


def cancel(execution_id: UUID, *, message: str) -> ExecutionState | None:
    """Cancelled if it waited, running if its worker was asked to stop it, none if it has already ended."""
    parameters = {"execution": execution_id, "message": message}
    # Between the two statements a waiting ticket may be placed or a placed one handed back: look again.
    for _ in range(3):
        if fetch_row(CANCEL_WAITING, parameters):
            return ExecutionState.CANCELLED
        if fetch_row(CANCEL_PLACED, parameters):
            return ExecutionState.RUNNING
    return None
