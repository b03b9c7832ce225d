"""Closing: a run whose outcome is set becomes terminal, and its slot is free."""

from executions.states import (
    EXECUTION_TRANSITIONS,
    PLACED_EXECUTION,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.guards import may_become, pair_is_allowed
from executions.transitions.placement_end import (
    BEGAN_DATA,
    END_PARAMETERS,
    ENDED_DATA,
    NO_USAGE,
    OVER,
    USAGE_PARAMETERS,
    USED,
    PlacementEnd,
    usage_parameters,
)
from executions.transitions.rows import StateRow
from executions.transitions.settlement import UNKNOWN, Settlement, SettlingStatement
from isolane.limits import Usage
from resources.placement import Placement

_MAY_END = pair_is_allowed(
    EXECUTION_TRANSITIONS,
    "e.state",
    "e.outcome",
    targets=TERMINAL_EXECUTION,
    only=PLACED_EXECUTION,
)
_HAS_NOT_RUN = may_become(
    STEP_TRANSITIONS, StepState.SKIPPED, StepState.CANCELLED, only={StepState.PENDING}
)

# An outcome is final: from here on nobody but this statement writes the run, except for events of its connections.
_DELETED_TICKET = f"""fence AS (
    DELETE FROM public.placement_ticket t USING executions_execution e
    WHERE t.execution_id = %(execution)s::uuid AND t.epoch = %(epoch)s::int AND t.worker_id = %(boot)s::uuid
      AND t.state = '{TicketState.PLACED}' AND e.id = t.execution_id AND e.outcome <> ''
      AND {_MAY_END}
    RETURNING t.execution_id, e.outcome, e.announced_epoch <> %(epoch)s::int AS unannounced
)"""  # noqa: S608 - all constants

_HAPPENED = f"""happened(ordinal, kind, step, data) AS (
    SELECT 1, 'placement.began', '', {BEGAN_DATA} FROM fence WHERE fence.unannounced
    UNION ALL
    SELECT 2, 'placement.lost', '', {ENDED_DATA} FROM fence WHERE %(lost)s::bool
    UNION ALL
    SELECT 3, 'execution.' || fence.outcome, '', jsonb_build_object('epoch', %(epoch)s::int) FROM fence
)"""  # noqa: S608 - all constants

# A cancelled run says who asked for it.
_CLOSED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = e.outcome, finished_at = now(), next_step = '', announced_epoch = %(epoch)s::int,
        last_event = e.last_event + {EVENT_COUNT}, {USED},
        message = CASE e.outcome WHEN '{ExecutionState.CANCELLED}' THEN coalesce((
            SELECT nullif(asked.data ->> 'message', '') FROM executions_executionevent asked
            WHERE asked.execution_id = e.id AND asked.kind = 'execution.cancel_requested'
            ORDER BY asked.sequence DESC LIMIT 1), e.message) ELSE e.message END
    FROM fence WHERE e.id = fence.execution_id
    RETURNING e.id, e.state, e.last_event
)"""  # noqa: S608 - all constants

# What has not run is skipped when the run failed, cancelled when it was cancelled.
_ENDED_STEPS = f"""steps AS (
    UPDATE executions_step s
    SET state = CASE run.state WHEN '{ExecutionState.CANCELLED}' THEN '{StepState.CANCELLED}'
                               ELSE '{StepState.SKIPPED}' END,
        finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state {_HAS_NOT_RUN}
)"""  # noqa: S608 - all constants

# Locks:   the ticket, which is deleted; the run; its steps.
# Guard:   this placement holds the ticket; the run has an outcome, which it may become from its state.
# Writes:  the run is terminal, with what it has used; steps that have not run are skipped or cancelled; the ledger,
#          when it settles.
# Events:  placement.began if no claim announced it; placement.lost if it was; execution.<outcome>.
# Returns: the state; no row if it is refused.
CLOSE = SettlingStatement(
    "close",
    _DELETED_TICKET,
    _HAPPENED,
    _CLOSED_RUN,
    _ENDED_STEPS,
    EVENTS,
    then="SELECT state FROM run",
    parameters=(*END_PARAMETERS, *USAGE_PARAMETERS),
    row=StateRow,
)


def close_execution(
    placement: Placement,
    settlement: Settlement | None = UNKNOWN,
    *,
    ending: PlacementEnd = OVER,
    usage: Usage = NO_USAGE,
) -> ExecutionState | None:
    """Make a run whose outcome is set terminal and free its slot; none means that the fence refused.

    Without a settlement the run declares no resources, and nobody looks for any.
    """
    parameters = {**ending.parameters(placement), **usage_parameters(usage)}
    row = CLOSE.fetch(parameters, settlement)
    return ExecutionState(row.state) if row else None
