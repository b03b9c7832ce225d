"""Ending a run that holds no slot."""

from uuid import UUID

from executions.models.approval import ApprovalState
from executions.states import (
    BEGUN_STEP,
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    UNPLACED_EXECUTION,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.guards import may_become, pair_is_allowed
from executions.transitions.rows import RunRow
from tenants.statement import Statement, compose

_MAY_END = pair_is_allowed(
    EXECUTION_TRANSITIONS,
    "e.state",
    "%(outcome)s::text",
    targets=TERMINAL_EXECUTION,
    only=UNPLACED_EXECUTION,
)
_HAS_NOT_RUN = may_become(
    STEP_TRANSITIONS, StepState.SKIPPED, StepState.CANCELLED, only={StepState.PENDING}
)
_HAS_BEGUN = may_become(
    STEP_TRANSITIONS,
    StepState.FAILED,
    StepState.CANCELLED,
    only=BEGUN_STEP - {StepState.RUNNING},
)

_DELETED_TICKET = f"""fence AS (
    DELETE FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND state <> '{TicketState.PLACED}'
    RETURNING execution_id
), due AS (
    DELETE FROM public.placement_due d USING fence WHERE d.kind IN ('wake', 'approval') AND d.ref = fence.execution_id
)"""  # noqa: S608 - all constants

_LOCKED_RUN = f"""locked AS (
    SELECT e.id FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.outcome = ''
      AND {_MAY_END}
    FOR NO KEY UPDATE OF e
)"""  # noqa: S608 - all constants

# A step that waited for its next attempt or for a person.
_INTERRUPTED_STEPS = f"""interrupted AS (
    SELECT s.path, s.attempt FROM executions_step s JOIN locked ON s.execution_id = locked.id
    WHERE s.state {_HAS_BEGUN} FOR NO KEY UPDATE OF s
)"""  # noqa: S608 - all constants

_HAPPENED = f"""happened(ordinal, kind, step, data) AS (
    SELECT 1, CASE %(outcome)s::text WHEN '{ExecutionState.CANCELLED}' THEN 'step.{StepState.CANCELLED}'
                                     ELSE 'step.{StepState.FAILED}' END,
           interrupted.path, jsonb_build_object('attempt', interrupted.attempt, 'code', %(code)s::text)
    FROM interrupted
    UNION ALL
    SELECT 2, 'execution.' || %(outcome)s::text, '', jsonb_build_object('code', %(code)s::text)
)"""  # noqa: S608 - all constants

_ENDED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = %(outcome)s::text, outcome = %(outcome)s::text, code = %(code)s::text, message = %(message)s::text,
        next_step = '', wake_at = NULL, question = '', finished_at = now(), last_event = e.last_event + {EVENT_COUNT}
    FROM locked WHERE e.id = locked.id
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

_ENDED_STEPS = f"""steps AS (
    UPDATE executions_step s
    SET finished_at = now(), retry_at = NULL,
        state = CASE WHEN %(outcome)s::text = '{ExecutionState.CANCELLED}' THEN '{StepState.CANCELLED}'
                     WHEN s.state = '{StepState.PENDING}' THEN '{StepState.SKIPPED}' ELSE '{StepState.FAILED}' END,
        code = CASE s.state WHEN '{StepState.PENDING}' THEN s.code ELSE %(code)s::text END,
        message = CASE s.state WHEN '{StepState.PENDING}' THEN s.message ELSE %(message)s::text END
    FROM run
    WHERE s.execution_id = run.id AND (s.state {_HAS_NOT_RUN} OR s.path IN (SELECT path FROM interrupted))
)"""  # noqa: S608 - all constants

_WITHDRAWN_QUESTION = f"""approval AS (
    UPDATE executions_approval a SET state = '{ApprovalState.WITHDRAWN}', answered_at = now()
    FROM run WHERE a.execution_id = run.id AND a.state = '{ApprovalState.OPEN}'
)"""  # noqa: S608 - all constants

# Locks:   the ticket, which is deleted; the run; its steps.
# Guard:   the ticket is not placed; run without outcome, may become it from its state.
# Writes:  the run and its steps end, its question is withdrawn, its due row deleted.
# Events:  step.failed or step.cancelled of a step that had begun; execution.<outcome>.
# Returns: the run; no row if it holds a slot or has ended.
END_WAITING = Statement(
    "end_waiting",
    compose(
        _DELETED_TICKET,
        _LOCKED_RUN,
        _INTERRUPTED_STEPS,
        _HAPPENED,
        _ENDED_RUN,
        _ENDED_STEPS,
        _WITHDRAWN_QUESTION,
        EVENTS,
        then="SELECT id FROM run",
    ),
    parameters=("execution", "outcome", "code", "message"),
    row=RunRow,
)


def end_waiting(execution_id: UUID, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """End a run that holds no slot; false if it holds one or has already ended."""
    parameters = {
        "execution": execution_id,
        "outcome": outcome.value,
        "code": code,
        "message": message,
    }
    return END_WAITING.fetch(parameters) is not None
