"""Handing back: a run without outcome gives its slot away. It waits for its time or a person, or is queued to go on."""

from executions.models.approval import ApprovalState
from executions.states import (
    EXECUTION_TRANSITIONS,
    PLACED_EXECUTION,
    STEP_TRANSITIONS,
    UNPLACED_EXECUTION,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE_TO_RELEASE, LOCKED_RUN, LOCKED_STEPS
from executions.transitions.guards import may_become, pair_is_allowed
from executions.transitions.placement_end import (
    BEGAN_DATA,
    END_PARAMETERS,
    ENDED_DATA,
    NO_USAGE,
    USAGE_PARAMETERS,
    USED,
    PlacementEnd,
    usage_parameters,
)
from executions.transitions.rows import StateRow
from executions.transitions.settlement import UNKNOWN, Settlement, SettlingStatement
from isolane.limits import Usage
from resources.placement import Placement

_MAY_LEAVE = pair_is_allowed(
    EXECUTION_TRANSITIONS,
    "state",
    "becomes",
    targets=UNPLACED_EXECUTION,
    only=PLACED_EXECUTION,
    or_is=True,
)
_MAY_BE_RESET = may_become(STEP_TRANSITIONS, StepState.PENDING)

# A run that has a time to wake at waits for it, whichever worker ends its placement; what it asks a person can be
# answered from then on, and until that time.
_LEAVING_RUN = f"""leaving AS (
    SELECT * FROM (
        SELECT locked.*, %(lost)s::bool AND locked.wake_at IS NOT NULL AS lost_asleep,
               CASE WHEN locked.wake_at IS NULL THEN '{ExecutionState.QUEUED}'
                    WHEN locked.question = '' THEN '{ExecutionState.WAITING}'
                    ELSE '{ExecutionState.SUSPENDED}' END AS becomes
        FROM locked) decided
    WHERE {_MAY_LEAVE}
)"""  # noqa: S608 - all constants

_RELEASED_TICKET = f"""ticket AS (
    UPDATE public.placement_ticket t
    SET state = CASE leaving.becomes WHEN '{ExecutionState.QUEUED}' THEN '{TicketState.WAITING}'
                                     ELSE '{TicketState.PARKED}' END,
        worker_id = NULL, epoch = t.epoch + 1, deadline = NULL,
        time_left = greatest(coalesce(extract(epoch FROM t.deadline - now()), t.time_left), 0),
        -- A run that may be the cause of its losses must not stand before all others again.
        waiting_since = CASE WHEN %(lost)s::bool THEN now() ELSE t.waiting_since END
    FROM leaving WHERE t.execution_id = leaving.id
    RETURNING t.execution_id, t.tenant_id
)"""  # noqa: S608 - all constants

_DUE = """due AS (
    INSERT INTO public.placement_due (tenant_id, kind, ref, at)
    SELECT ticket.tenant_id, CASE leaving.question WHEN '' THEN 'wake' ELSE 'approval' END, leaving.id, leaving.wake_at
    FROM ticket, leaving WHERE leaving.wake_at IS NOT NULL
    ON CONFLICT (kind, ref) DO UPDATE SET at = excluded.at
)"""

_INTERRUPTED_STEPS = f"""interrupted AS (
    SELECT path, state = '{StepState.RUNNING}' AS was_running FROM begun WHERE state {_MAY_BE_RESET}
)"""  # noqa: S608 - all constants

_HAPPENED = f"""happened(ordinal, kind, step, data) AS (
    SELECT 1, 'placement.began', '', {BEGAN_DATA} FROM leaving WHERE leaving.unannounced
    UNION ALL
    SELECT 2, 'placement.lost', '', {ENDED_DATA} FROM leaving WHERE leaving.lost_asleep
    UNION ALL
    SELECT 3,
           CASE WHEN leaving.becomes <> '{ExecutionState.QUEUED}' THEN 'execution.' || leaving.becomes
                WHEN %(lost)s::bool THEN 'placement.lost' ELSE 'placement.handed_over' END,
           coalesce((SELECT path FROM interrupted LIMIT 1),
                    CASE leaving.becomes WHEN '{ExecutionState.SUSPENDED}' THEN leaving.next_step END, ''),
           {ENDED_DATA} || jsonb_strip_nulls(jsonb_build_object(
               'until', leaving.wake_at,
               -- What an interrupted attempt has cost is not billed, since nobody knows all of it.
               'unbilled', (SELECT true FROM interrupted WHERE was_running LIMIT 1)))
    FROM leaving
)"""  # noqa: S608 - all constants

_UNPLACED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = leaving.becomes, last_event = e.last_event + {EVENT_COUNT}, announced_epoch = %(epoch)s::int,
        losses = e.losses + %(counted)s::bool::int, {USED}
    FROM ticket, leaving WHERE e.id = ticket.execution_id
    RETURNING e.id, e.state, e.last_event
)"""  # noqa: S608 - all constants

# The attempt that was interrupted is not used up. The time of a retry stays.
_RESET_STEPS = f"""steps AS (
    UPDATE executions_step s
    SET state = '{StepState.PENDING}', attempt = s.attempt - interrupted.was_running::int
    FROM run, interrupted WHERE s.execution_id = run.id AND s.path = interrupted.path
)"""  # noqa: S608 - all constants

_ASKED = f"""approval AS (
    INSERT INTO executions_approval
        (execution_id, number, step, prompt, state, asked_at, expires_at, answered_by, comment)
    SELECT run.id, 1 + (SELECT count(*) FROM executions_approval a WHERE a.execution_id = run.id), leaving.next_step,
           leaving.question, '{ApprovalState.OPEN}', now(), leaving.wake_at, '', ''
    FROM run, leaving WHERE run.state = '{ExecutionState.SUSPENDED}'
)"""  # noqa: S608 - all constants

# Locks:   the ticket, the run, the steps that have begun. Before it looks: a checkpoint under way may be setting the
#          outcome, and such a run must be closed instead.
# Guard:   fence, no cancel asked for; run without outcome, may become what it is to be; steps may be pending again.
# Writes:  ticket waiting or parked, epoch + 1; due row; run, with what it has used; interrupted steps; approval; the
#          ledger, when it settles.
# Events:  placement.began if no claim announced it; placement.lost or .handed_over, or execution.waiting or .suspended.
# Returns: the state; no row if it is refused.
HAND_BACK = SettlingStatement(
    "hand_back",
    FENCE_TO_RELEASE,
    LOCKED_RUN,
    _LEAVING_RUN,
    _RELEASED_TICKET,
    _DUE,
    LOCKED_STEPS,
    _INTERRUPTED_STEPS,
    _HAPPENED,
    _UNPLACED_RUN,
    _RESET_STEPS,
    _ASKED,
    EVENTS,
    then="SELECT state FROM run",
    parameters=(*END_PARAMETERS, *USAGE_PARAMETERS, "counted"),
    row=StateRow,
)


def hand_back(
    placement: Placement,
    ending: PlacementEnd,
    *,
    counted: bool | None = None,
    settlement: Settlement | None = UNKNOWN,
    usage: Usage = NO_USAGE,
) -> ExecutionState | None:
    """Give the slot of a run without outcome away: it waits for its time or a person, or is queued to go on.

    None means that the fence refused. A loss is counted unless said otherwise, a drain is not. Not a run whose
    cancelling was asked for meanwhile: nobody would place it again, nor end it.
    """
    is_counted = ending.lost if counted is None else counted
    parameters = {
        **ending.parameters(placement),
        **usage_parameters(usage),
        "counted": is_counted,
    }
    row = HAND_BACK.fetch(parameters, settlement)
    return ExecutionState(row.state) if row else None
