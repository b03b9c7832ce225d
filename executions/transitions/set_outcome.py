"""Deciding how a run ends in which no step is at work; its close makes it so."""

from executions.states import (
    BEGUN_STEP,
    STEP_TRANSITIONS,
    ExecutionState,
    StepState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE, FENCE_PARAMETERS, LOCKED_RUN, LOCKED_STEPS
from executions.transitions.guards import may_become
from executions.transitions.rows import RunRow
from resources.placement import Placement
from tenants.statement import Statement, compose

_MAY_END = may_become(STEP_TRANSITIONS, StepState.CANCELLED, StepState.FAILED, only=BEGUN_STEP)

_INTERRUPTED_STEPS = f"""interrupted AS (
    SELECT path, attempt, state FROM begun WHERE state {_MAY_END}
)"""  # noqa: S608 - all constants

_HAPPENED = f"""happened(ordinal, kind, step, data) AS (
    SELECT 1, 'step.' || %(step_state)s::text, interrupted.path, jsonb_strip_nulls(jsonb_build_object(
               'attempt', interrupted.attempt, 'code', nullif(%(code)s::text, ''),
               'unbilled', nullif(interrupted.state = '{StepState.RUNNING}', false)))
    FROM interrupted
)"""  # noqa: S608 - all constants

_DECIDED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET outcome = %(outcome)s::text, code = %(code)s::text, message = %(message)s::text, version = e.version + 1,
        wake_at = NULL, question = '', last_event = e.last_event + {EVENT_COUNT}
    FROM locked WHERE e.id = locked.id
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

_ENDED_STEPS = """steps AS (
    UPDATE executions_step s
    SET state = %(step_state)s::text, code = %(code)s::text, message = %(message)s::text, finished_at = now(),
        retry_at = NULL -- nothing comes after this
    FROM run, interrupted WHERE s.execution_id = run.id AND s.path = interrupted.path
)"""

# Locks:   the ticket FOR SHARE, the run, the steps that have begun.
# Guard:   fence; run without outcome; of its steps those that have begun, and not ended.
# Writes:  the run's outcome; those steps end.
# Events:  step.failed or step.cancelled of each of them.
# Returns: the run; no row if it is refused.
SET_OUTCOME = Statement(
    "set_outcome",
    compose(
        FENCE,
        LOCKED_RUN,
        LOCKED_STEPS,
        _INTERRUPTED_STEPS,
        _HAPPENED,
        _DECIDED_RUN,
        _ENDED_STEPS,
        EVENTS,
        then="SELECT id FROM run",
    ),
    parameters=(*FENCE_PARAMETERS, "outcome", "code", "message", "step_state"),
    row=RunRow,
)


def set_outcome(placement: Placement, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """Decide how a run ends in which no step is at work; false if it has an outcome or the fence refused."""
    cancelled = outcome is ExecutionState.CANCELLED
    parameters = {
        **placement.parameters(),
        "outcome": outcome.value,
        "code": code,
        "message": message,
        "step_state": (StepState.CANCELLED if cancelled else StepState.FAILED).value,
    }
    return SET_OUTCOME.fetch(parameters) is not None
