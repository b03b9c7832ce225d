"""Restarting: the runtime died and the run goes on under a new placement, on the same worker and in its slot."""

from typing import NamedTuple

from executions.semantics.reasons import EndReason
from executions.states import STEP_TRANSITIONS, StepState
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE_PARAMETERS, FENCE_TO_RELEASE, LOCKED_RUN
from executions.transitions.guards import may_become
from executions.transitions.placement_end import (
    NO_USAGE,
    USAGE_PARAMETERS,
    USED,
    usage_parameters,
)
from executions.transitions.settlement import UNKNOWN, Settlement, SettlingStatement
from isolane.limits import Usage
from resources.placement import Placement

_MAY_BE_RESET = may_become(STEP_TRANSITIONS, StepState.PENDING, only={StepState.RUNNING})


class RestartRow(NamedTuple):
    """The new placement."""

    epoch: int


_RENEWED_TICKET = """ticket AS (
    UPDATE public.placement_ticket t SET epoch = t.epoch + 1
    FROM locked WHERE t.execution_id = locked.id AND locked.wake_at IS NULL
    RETURNING t.execution_id, t.epoch
)"""

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'context.restarted', '', jsonb_build_object('epoch', ticket.epoch, 'reason', %(reason)s::text)
    FROM ticket
)"""

_TOLD_RUN = f"""run AS (
    UPDATE executions_execution e SET last_event = e.last_event + {EVENT_COUNT}, {USED}
    FROM ticket WHERE e.id = ticket.execution_id
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

# A step that was claimed for the dead runtime has not begun, and uses no attempt.
_RESET_STEP = f"""step AS (
    UPDATE executions_step s SET state = '{StepState.PENDING}', attempt = s.attempt - 1
    FROM run WHERE s.execution_id = run.id AND s.state {_MAY_BE_RESET}
)"""  # noqa: S608 - all constants

# Locks:   the ticket, the run, the running step.
# Guard:   fence, no cancel asked for; run without outcome or time to wait for.
# Writes:  the ticket's epoch + 1, what the run has used, the running step is pending; the ledger, when it settles.
# Events:  context.restarted.
# Returns: the new epoch; no row if it is refused.
RESTART = SettlingStatement(
    "restart",
    FENCE_TO_RELEASE,
    LOCKED_RUN,
    _RENEWED_TICKET,
    _HAPPENED,
    _TOLD_RUN,
    _RESET_STEP,
    EVENTS,
    then="SELECT epoch FROM ticket",
    parameters=(*FENCE_PARAMETERS, *USAGE_PARAMETERS, "reason"),
    row=RestartRow,
)


def restart(
    placement: Placement,
    *,
    reason: EndReason,
    settlement: Settlement | None = UNKNOWN,
    usage: Usage = NO_USAGE,
) -> int | None:
    """Begin a new placement on the same worker; returns its epoch, none if the fence refused."""
    parameters = {
        **placement.parameters(),
        **usage_parameters(usage),
        "reason": reason.value,
    }
    row = RESTART.fetch(parameters, settlement)
    return row.epoch if row else None
