"""A run without a slot: ended without being placed, told why it waits, or woken when its time has come."""

from uuid import UUID

from executions.semantics.reasons import QueueReason
from executions.states import ExecutionState, StepState
from executions.transitions.fence import fetch_row

BEGUN = [StepState.RETRYING.value, StepState.SUSPENDED.value]

# A step that waited for its next attempt or for a person ends with an event of its own; what never began does not.
END_WAITING = """
WITH fence AS (
    DELETE FROM public.placement_ticket WHERE execution_id = %(execution)s::uuid AND state <> 'placed'
    RETURNING execution_id
), due AS (
    DELETE FROM public.placement_due d USING fence WHERE d.kind IN ('wake', 'approval') AND d.ref = fence.execution_id
), locked AS (
    SELECT e.id FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.outcome = '' FOR NO KEY UPDATE OF e
), cut AS (
    SELECT s.path, s.attempt FROM executions_step s JOIN locked ON s.execution_id = locked.id
    WHERE s.state = ANY(%(begun)s::text[]) FOR NO KEY UPDATE OF s
), run AS (
    UPDATE executions_execution e
    SET state = %(outcome)s::text, outcome = %(outcome)s::text, code = %(code)s::text, message = %(message)s::text,
        next_step = '', wake_at = NULL, question = '', finished_at = now(),
        last_event = e.last_event + 1 + (SELECT count(*) FROM cut)
    FROM locked WHERE e.id = locked.id
    RETURNING e.id, e.last_event
), steps AS (
    UPDATE executions_step s
    SET finished_at = now(), retry_at = NULL,
        state = CASE WHEN %(outcome)s::text = 'cancelled' THEN 'cancelled'
                     WHEN s.state = 'pending' THEN 'skipped' ELSE 'failed' END,
        code = CASE s.state WHEN 'pending' THEN s.code ELSE %(code)s::text END,
        message = CASE s.state WHEN 'pending' THEN s.message ELSE %(message)s::text END
    FROM run WHERE s.execution_id = run.id AND (s.state = 'pending' OR s.path IN (SELECT path FROM cut))
), approval AS (
    UPDATE executions_approval a SET state = 'withdrawn', answered_at = now()
    FROM run WHERE a.execution_id = run.id AND a.state = 'open'
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event - row_number() OVER (ORDER BY cut.path DESC), now(),
           CASE %(outcome)s::text WHEN 'cancelled' THEN 'step.cancelled' ELSE 'step.failed' END, cut.path,
           jsonb_build_object('attempt', cut.attempt, 'code', %(code)s::text)
    FROM run, cut
    UNION ALL
    SELECT id, last_event, now(), 'execution.' || %(outcome)s::text, '', jsonb_build_object('code', %(code)s::text)
    FROM run
)
SELECT id FROM run"""

EXPLAIN_WAITING = """
UPDATE executions_execution SET message = %(message)s::text
WHERE id = %(execution)s::uuid AND state = 'queued' AND outcome = '' AND message = '' RETURNING id"""

# With nothing left to run, the wake-up ends the run itself, without a placement.
WAKE = """
WITH due AS (
    DELETE FROM public.placement_due
    WHERE kind = 'wake' AND ref = %(execution)s::uuid AND at <= now() RETURNING ref
), parked AS (
    SELECT t.execution_id, e.next_step
    FROM public.placement_ticket t JOIN due ON due.ref = t.execution_id
    JOIN executions_execution e ON e.id = t.execution_id
    WHERE t.state = 'parked' FOR UPDATE OF t
), queued AS (
    UPDATE public.placement_ticket t SET state = 'waiting', waiting_since = now()
    FROM parked WHERE t.execution_id = parked.execution_id AND parked.next_step <> ''
), released AS (
    DELETE FROM public.placement_ticket t
    USING parked WHERE t.execution_id = parked.execution_id AND parked.next_step = ''
), run AS (
    UPDATE executions_execution e
    SET state = CASE parked.next_step WHEN '' THEN 'succeeded' ELSE 'queued' END,
        outcome = CASE parked.next_step WHEN '' THEN 'succeeded' ELSE '' END,
        finished_at = CASE parked.next_step WHEN '' THEN now() END, wake_at = NULL, last_event = e.last_event + 1
    FROM parked WHERE e.id = parked.execution_id AND e.state = 'waiting'
    RETURNING e.id, e.state, e.last_event
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'execution.' || state, '', jsonb_build_object('reason', %(reason)s::text) FROM run
)
SELECT state FROM run"""


def end_waiting(execution_id: UUID, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """End a run that holds no slot; false if it holds one or has already ended."""
    parameters = {
        "execution": execution_id,
        "outcome": outcome.value,
        "code": code,
        "message": message,
        "begun": BEGUN,
    }
    return fetch_row(END_WAITING, parameters) is not None


def explain_waiting(execution_id: UUID, message: str) -> bool:
    """Write why a run waits, once; the first claim clears it. False if it was written before."""
    return fetch_row(EXPLAIN_WAITING, {"execution": execution_id, "message": message}) is not None


def wake(execution_id: UUID) -> ExecutionState | None:
    """Queue a parked run whose time has come, or end it if nothing is left; none if there is nothing to wake."""
    row = fetch_row(WAKE, {"execution": execution_id, "reason": QueueReason.WAKE_TIME.value})
    return ExecutionState(row[0]) if row else None
