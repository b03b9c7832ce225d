"""A run that waits for a slot: ended without ever being placed, or told why it waits."""

from uuid import UUID

from executions.states import ExecutionState
from executions.transitions.fence import fetch_row

END_WAITING = """
WITH fence AS (
    DELETE FROM public.placement_ticket WHERE execution_id = %(execution)s AND state <> 'placed' RETURNING execution_id
), run AS (
    UPDATE executions_execution e
    SET state = %(outcome)s, outcome = %(outcome)s, code = %(code)s, message = %(message)s, next_step = '',
        finished_at = now(), last_event = e.last_event + 1
    FROM fence WHERE e.id = fence.execution_id AND e.outcome = ''
    RETURNING e.id, e.last_event
), steps AS (
    UPDATE executions_step s
    SET finished_at = now(),
        state = CASE WHEN %(outcome)s = 'cancelled' THEN 'cancelled'
                     WHEN s.state = 'pending' THEN 'skipped' ELSE 'failed' END
    FROM run WHERE s.execution_id = run.id AND s.state IN ('pending', 'retrying', 'suspended')
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'execution.' || %(outcome)s, '', jsonb_build_object('code', %(code)s::text) FROM run
)
SELECT id FROM run"""

EXPLAIN_WAITING = """
UPDATE executions_execution SET message = %(message)s
WHERE id = %(execution)s AND state = 'queued' AND outcome = '' AND message <> %(message)s RETURNING id"""


def end_waiting(execution_id: UUID, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """End a run that holds no slot; false if it holds one or has already ended."""
    parameters = {
        "execution": execution_id,
        "outcome": outcome.value,
        "code": code,
        "message": message,
    }
    return fetch_row(END_WAITING, parameters) is not None


def explain_waiting(execution_id: UUID, message: str) -> bool:
    """Say why a run waits; the first claim clears it. False if that has been said already."""
    return fetch_row(EXPLAIN_WAITING, {"execution": execution_id, "message": message}) is not None
