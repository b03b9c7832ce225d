"""The end of a placement: the run becomes terminal or is queued again; the ticket moves with it."""

from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    ExecutionState,
    StepState,
    sources,
)
from executions.transitions.fence import (
    FENCE,
    FENCE_TO_RELEASE,
    LOCKED_RUN,
    Placement,
    fetch_row,
)

# What has not run is skipped when the run failed, cancelled when it was cancelled.
CLOSE = """
WITH fence AS (
    DELETE FROM public.placement_ticket t USING executions_execution e
    WHERE t.execution_id = %(execution)s AND t.epoch = %(epoch)s AND t.worker_id = %(boot)s AND t.state = 'placed'
      AND e.id = t.execution_id AND e.outcome <> ''
    RETURNING t.execution_id
), run AS (
    UPDATE executions_execution e
    SET state = e.outcome, finished_at = now(), next_step = '', last_event = e.last_event + 1
    FROM fence WHERE e.id = fence.execution_id AND e.state = ANY(%(endable)s)
    RETURNING e.id, e.state, e.last_event
), steps AS (
    UPDATE executions_step s
    SET state = CASE run.state WHEN 'cancelled' THEN 'cancelled' ELSE 'skipped' END, finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state = 'pending'
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'execution.' || state, '', jsonb_build_object('epoch', %(epoch)s::int) FROM run
)
SELECT state FROM run"""

# Locks before it looks: a checkpoint in flight may be setting the outcome, and such a run must be closed instead.
HAND_BACK = f"""
WITH {FENCE_TO_RELEASE}, {LOCKED_RUN}, ticket AS (
    UPDATE public.placement_ticket t
    SET state = 'waiting', worker_id = NULL, epoch = t.epoch + 1,
        -- A run that may be the cause of its losses must not stand before all others again.
        waiting_since = CASE WHEN %(lost)s THEN now() ELSE t.waiting_since END
    FROM locked WHERE t.execution_id = locked.id
    RETURNING t.execution_id
), run AS (
    UPDATE executions_execution e
    SET state = 'queued', last_event = e.last_event + 1, losses = e.losses + %(lost)s::int
    FROM ticket WHERE e.id = ticket.execution_id AND e.state = ANY(%(requeueable)s)
    RETURNING e.id, e.last_event
), steps AS (
    UPDATE executions_step s SET state = 'pending'
    FROM run WHERE s.execution_id = run.id AND s.state = ANY(%(resettable)s)
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'placement.ended', '',
           jsonb_build_object('epoch', %(epoch)s::int, 'reason', %(reason)s::text) FROM run
)
SELECT execution_id FROM ticket"""  # noqa: S608 - the fence is a constant

SET_OUTCOME = f"""
WITH {FENCE}, run AS (
    UPDATE executions_execution e SET outcome = %(outcome)s, code = %(code)s, message = %(message)s
    FROM fence WHERE e.id = fence.execution_id AND e.outcome = ''
    RETURNING e.id
), steps AS (
    UPDATE executions_step s
    SET state = %(step_state)s, code = %(code)s, message = %(message)s, finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state = ANY(%(cuttable)s)
)
SELECT id FROM run"""  # noqa: S608 - the fence is a constant

ENDABLE = [ExecutionState.QUEUED.value, ExecutionState.RUNNING.value]
REQUEUEABLE = [*sources(EXECUTION_TRANSITIONS, ExecutionState.QUEUED), ExecutionState.QUEUED.value]
RESETTABLE = sources(STEP_TRANSITIONS, StepState.PENDING)
CUTTABLE = [StepState.RUNNING.value, StepState.RETRYING.value]


def close_execution(placement: Placement) -> ExecutionState | None:
    """Make a run whose outcome is set terminal and free its slot; none means that the fence refused."""
    row = fetch_row(CLOSE, {**placement.parameters(), "endable": ENDABLE})
    return ExecutionState(row[0]) if row else None


def hand_back(placement: Placement, *, reason: str, lost: bool) -> bool:
    """Put a run without outcome back into the queue, to be resumed from its checkpoint elsewhere.

    A loss is counted, a drain is not. Not one whose cancelling was asked for meanwhile: nobody would place it
    again, nor end it.
    """
    parameters = {
        **placement.parameters(),
        "reason": reason,
        "lost": lost,
        "requeueable": REQUEUEABLE,
        "resettable": RESETTABLE,
    }
    return fetch_row(HAND_BACK, parameters) is not None


def set_outcome(placement: Placement, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """Decide how a run ends for which no link is active; false if it has an outcome or the fence refused."""
    parameters = {
        **placement.parameters(),
        "outcome": outcome.value,
        "code": code,
        "message": message,
        "step_state": (
            StepState.CANCELLED if outcome is ExecutionState.CANCELLED else StepState.FAILED
        ).value,
        "cuttable": CUTTABLE,
    }
    return fetch_row(SET_OUTCOME, parameters) is not None
