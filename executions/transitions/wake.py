"""Waking a run whose time has come: it is queued, or ends if nothing of it is left."""

from uuid import UUID

from executions.semantics.reasons import QueueReason
from executions.states import (
    EXECUTION_TRANSITIONS,
    TICKET_TRANSITIONS,
    ExecutionState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.guards import may_become
from executions.transitions.rows import StateRow
from tenants.statement import Statement, compose

_IS_PARKED = may_become(TICKET_TRANSITIONS, TicketState.WAITING, only={TicketState.PARKED})
_MAY_WAKE = may_become(
    EXECUTION_TRANSITIONS,
    ExecutionState.QUEUED,
    ExecutionState.SUCCEEDED,
    only={ExecutionState.WAITING},
)

_DELETED_DUE = """due AS (
    DELETE FROM public.placement_due
    WHERE kind = 'wake' AND ref = %(execution)s::uuid AND at <= now() RETURNING ref
)"""

_LOCKED_TICKET = f"""parked AS (
    SELECT t.execution_id, e.next_step,
           CASE e.next_step WHEN '' THEN '{ExecutionState.SUCCEEDED}' ELSE '{ExecutionState.QUEUED}' END AS becomes
    FROM public.placement_ticket t JOIN due ON due.ref = t.execution_id
    JOIN executions_execution e ON e.id = t.execution_id
    WHERE t.state {_IS_PARKED} FOR UPDATE OF t
)"""  # noqa: S608 - all constants

_TICKET = f"""queued AS (
    UPDATE public.placement_ticket t SET state = '{TicketState.WAITING}', waiting_since = now()
    FROM parked WHERE t.execution_id = parked.execution_id AND parked.next_step <> ''
), released AS (
    DELETE FROM public.placement_ticket t
    USING parked WHERE t.execution_id = parked.execution_id AND parked.next_step = ''
)"""  # noqa: S608 - all constants

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'execution.' || parked.becomes, '', jsonb_build_object('reason', %(reason)s::text) FROM parked
)"""

_WOKEN_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = parked.becomes, wake_at = NULL, last_event = e.last_event + {EVENT_COUNT},
        outcome = CASE parked.next_step WHEN '' THEN parked.becomes ELSE '' END,
        finished_at = CASE parked.next_step WHEN '' THEN now() END
    FROM parked WHERE e.id = parked.execution_id AND e.state {_MAY_WAKE}
    RETURNING e.id, e.state, e.last_event
)"""  # noqa: S608 - all constants

# Locks:   the due row, which is deleted; the ticket; the run.
# Guard:   the time has come; the ticket is parked; the run waits.
# Writes:  ticket waiting and run queued; with nothing left to run, the ticket is deleted and the run has succeeded.
# Events:  execution.queued or execution.succeeded.
# Returns: the state; no row if there is nothing to wake.
WAKE = Statement(
    "wake",
    compose(
        _DELETED_DUE,
        _LOCKED_TICKET,
        _TICKET,
        _HAPPENED,
        _WOKEN_RUN,
        EVENTS,
        then="SELECT state FROM run",
    ),
    parameters=("execution", "reason"),
    row=StateRow,
)


def wake(execution_id: UUID) -> ExecutionState | None:
    """Queue a parked run whose time has come, or end it if nothing is left; none if there is nothing to wake."""
    row = WAKE.fetch({"execution": execution_id, "reason": QueueReason.WAKE_TIME.value})
    return ExecutionState(row.state) if row else None
