"""The end of a placement: the run becomes terminal, waits, is queued again or goes on anew; its ticket with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executions.semantics.resource_tracker import TrackedResource
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
from executions.transitions.ledger import HELD, SETTLED, tracked_as_json
from tenants.statement import Row

# A placement whose first claim has told of it, or else whose end does; and who ended it, if not its own worker.
_BEGAN = "jsonb_strip_nulls(jsonb_build_object('epoch', %(epoch)s::int, 'worker', nullif(%(worker)s::text, '')))"
_ENDED = """'epoch', %(epoch)s::int, 'reason', %(reason)s::text, 'worker', nullif(%(worker)s::text, ''),
               'by', nullif(%(by)s::text, '')"""

# The step that the run is at, as it is once the run is locked: a claim may have been under way when the statement
# began, and a look by its state would not find it. So the state is looked at afterwards.
_BEGUN = """begun AS (
    SELECT s.path, s.attempt, s.state FROM executions_step s JOIN locked ON s.execution_id = locked.id
    WHERE s.path = locked.next_step OR s.state IN ('running', 'retrying', 'suspended') FOR NO KEY UPDATE OF s
)"""

# What has not run is skipped when the run failed, cancelled when it was cancelled. A cancelled run says who asked.
CLOSE = f"""
WITH fence AS (
    DELETE FROM public.placement_ticket t USING executions_execution e
    WHERE t.execution_id = %(execution)s::uuid AND t.epoch = %(epoch)s::int AND t.worker_id = %(boot)s::uuid
      AND t.state = 'placed' AND e.id = t.execution_id AND e.outcome <> ''
    RETURNING t.execution_id, e.placed <> %(epoch)s::int AS unseen
), run AS (
    UPDATE executions_execution e
    SET state = e.outcome, finished_at = now(), next_step = '', placed = %(epoch)s::int,
        last_event = e.last_event + 1 + fence.unseen::int + %(lost)s::bool::int,
        message = CASE e.outcome WHEN 'cancelled' THEN coalesce((
            SELECT nullif(asked.data ->> 'message', '') FROM executions_executionevent asked
            WHERE asked.execution_id = e.id AND asked.kind = 'execution.cancel_requested'
            ORDER BY asked.sequence DESC LIMIT 1), e.message) ELSE e.message END
    FROM fence WHERE e.id = fence.execution_id AND e.state = ANY(%(endable)s::text[])
    RETURNING e.id, e.state, e.last_event, fence.unseen
), steps AS (
    UPDATE executions_step s
    SET state = CASE run.state WHEN 'cancelled' THEN 'cancelled' ELSE 'skipped' END, finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state = 'pending'
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event - 1 - %(lost)s::bool::int, now(), 'placement.began', '', {_BEGAN} FROM run WHERE unseen
    UNION ALL
    SELECT id, last_event - 1, now(), 'placement.lost', '', jsonb_strip_nulls(jsonb_build_object({_ENDED}))
    FROM run WHERE %(lost)s::bool
    UNION ALL
    SELECT id, last_event, now(), 'execution.' || state, '', jsonb_build_object('epoch', %(epoch)s::int) FROM run
){{settled}}
SELECT state FROM run"""  # noqa: S608 - all constants

# Locks before it looks: a checkpoint in flight may be setting the outcome, and such a run must be closed instead.
# A run that has a time to wake at waits for it, whoever ends its placement; what it asks a person can be answered from
# then on, and until that time.
HAND_BACK = f"""
WITH {FENCE_TO_RELEASE}, {LOCKED_RUN}, ticket AS (
    UPDATE public.placement_ticket t
    SET state = CASE WHEN locked.wake_at IS NULL THEN 'waiting' ELSE 'parked' END,
        worker_id = NULL, epoch = t.epoch + 1, deadline = NULL,
        time_left = greatest(coalesce(extract(epoch FROM t.deadline - now()), t.time_left), 0),
        -- A run that may be the cause of its losses must not stand before all others again.
        waiting_since = CASE WHEN %(lost)s::bool THEN now() ELSE t.waiting_since END
    FROM locked WHERE t.execution_id = locked.id
    RETURNING t.execution_id, t.tenant_id, locked.wake_at, locked.question, locked.next_step, locked.unseen,
              %(lost)s::bool AND locked.wake_at IS NOT NULL AS lost_asleep
), due AS (
    INSERT INTO public.placement_due (tenant_id, kind, ref, at)
    SELECT tenant_id, CASE question WHEN '' THEN 'wake' ELSE 'approval' END, execution_id, wake_at
    FROM ticket WHERE wake_at IS NOT NULL
    ON CONFLICT (kind, ref) DO UPDATE SET at = excluded.at
), run AS (
    UPDATE executions_execution e
    SET state = CASE WHEN ticket.wake_at IS NULL THEN 'queued'
                     WHEN ticket.question = '' THEN 'waiting' ELSE 'suspended' END,
        last_event = e.last_event + 1 + ticket.unseen::int + ticket.lost_asleep::int, placed = %(epoch)s::int,
        losses = e.losses + %(counted)s::bool::int
    FROM ticket WHERE e.id = ticket.execution_id AND e.state = ANY(%(requeueable)s::text[])
    RETURNING e.id, e.state, e.last_event
), {_BEGUN}, cut AS (
    SELECT begun.path, begun.state = 'running' AS was_running FROM begun, run
    WHERE begun.state = ANY(%(resettable)s::text[])
), steps AS (
    UPDATE executions_step s
    -- The attempt that was cut is not used up. The time of a retry stays.
    SET state = 'pending', attempt = s.attempt - cut.was_running::int
    FROM run, cut WHERE s.execution_id = run.id AND s.path = cut.path
), approval AS (
    INSERT INTO executions_approval
        (execution_id, number, step, prompt, state, asked_at, expires_at, answered_by, comment)
    SELECT run.id, 1 + (SELECT count(*) FROM executions_approval a WHERE a.execution_id = run.id), ticket.next_step,
           ticket.question, 'open', now(), ticket.wake_at, '', ''
    FROM run, ticket WHERE run.state = 'suspended'
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event - 1 - ticket.lost_asleep::int, now(), 'placement.began', '', {_BEGAN}
    FROM run, ticket WHERE ticket.unseen
    UNION ALL
    SELECT run.id, run.last_event - 1, now(), 'placement.lost', '', jsonb_strip_nulls(jsonb_build_object({_ENDED}))
    FROM run, ticket WHERE ticket.lost_asleep
    UNION ALL
    SELECT run.id, run.last_event, now(),
           CASE WHEN run.state <> 'queued' THEN 'execution.' || run.state
                WHEN %(lost)s::bool THEN 'placement.lost' ELSE 'placement.handed_over' END,
           coalesce((SELECT path FROM cut LIMIT 1), CASE run.state WHEN 'suspended' THEN ticket.next_step END, ''),
           jsonb_strip_nulls(jsonb_build_object(
               {_ENDED}, 'until', ticket.wake_at,
               -- What a cut attempt has cost is not billed, since nobody knows all of it.
               'unbilled', (SELECT true FROM cut WHERE was_running LIMIT 1)))
    FROM run, ticket
){{settled}}
SELECT run.state FROM run"""  # noqa: S608 - the fence is a constant

# The runtime died and the run goes on: a new placement on the same worker, without leaving the slot. A step that was
# claimed for the dead one has not begun, and uses no attempt.
RESTART = f"""
WITH {FENCE_TO_RELEASE}, {LOCKED_RUN}, ticket AS (
    UPDATE public.placement_ticket t SET epoch = t.epoch + 1
    FROM locked WHERE t.execution_id = locked.id AND locked.wake_at IS NULL
    RETURNING t.execution_id, t.epoch
), run AS (
    UPDATE executions_execution e SET last_event = e.last_event + 1
    FROM ticket WHERE e.id = ticket.execution_id
    RETURNING e.id, e.last_event
), step AS (
    UPDATE executions_step s SET state = 'pending', attempt = s.attempt - 1
    FROM run WHERE s.execution_id = run.id AND s.state = 'running'
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event, now(), 'context.restarted', '',
           jsonb_build_object('epoch', ticket.epoch, 'reason', %(reason)s::text)
    FROM run, ticket
){{settled}}
SELECT epoch FROM ticket"""  # noqa: S608 - the fence is a constant

# A step that was at work ends with the run, and with an event of its own.
SET_OUTCOME = f"""
WITH {FENCE}, {LOCKED_RUN}, {_BEGUN}, cut AS (
    SELECT path, attempt, state FROM begun WHERE state = ANY(%(cuttable)s::text[])
), run AS (
    UPDATE executions_execution e
    SET outcome = %(outcome)s::text, code = %(code)s::text, message = %(message)s::text, version = e.version + 1,
        wake_at = NULL, question = '', last_event = e.last_event + (SELECT count(*) FROM cut)
    FROM locked WHERE e.id = locked.id
    RETURNING e.id, e.last_event
), steps AS (
    UPDATE executions_step s
    SET state = %(step_state)s::text, code = %(code)s::text, message = %(message)s::text, finished_at = now(),
        retry_at = NULL -- nothing comes after this
    FROM run, cut WHERE s.execution_id = run.id AND s.path = cut.path
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event + 1 - row_number() OVER (ORDER BY cut.path DESC), now(),
           'step.' || %(step_state)s::text, cut.path,
           jsonb_strip_nulls(jsonb_build_object(
               'attempt', cut.attempt, 'code', nullif(%(code)s::text, ''),
               'unbilled', nullif(cut.state = 'running', false)))
    FROM run, cut
)
SELECT id FROM run"""  # noqa: S608 - the fence is a constant

# Written out once: a statement is prepared by its text.
PLAIN = {text: text.format(settled="") for text in (CLOSE, HAND_BACK, RESTART)}
SETTLING = {text: text.format(settled=HELD + SETTLED) for text in (CLOSE, HAND_BACK, RESTART)}
ENDABLE = [ExecutionState.QUEUED.value, ExecutionState.RUNNING.value]
REQUEUEABLE = [*sources(EXECUTION_TRANSITIONS, ExecutionState.QUEUED), ExecutionState.QUEUED.value]
RESETTABLE = sources(STEP_TRANSITIONS, StepState.PENDING)
CUTTABLE = [StepState.RUNNING.value, StepState.RETRYING.value, StepState.SUSPENDED.value]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What has become of a placement's resources, to be written with its end."""

    tracked: Sequence[TrackedResource] = ()  # that have changed since they were written
    revoked: Sequence[str] = ()  # ids of credentials that no remote server has any more


# Of a placement of which only the database knows what it had.
UNKNOWN = Settlement()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementEnd:
    """Why a placement ends, as the run's events say."""

    reason: str
    lost: bool = False  # its worker is gone, or could not go on with it
    by: str = ""  # the node name of who ends it, if that is not its own worker

    def parameters(self, placement: Placement) -> dict[str, Any]:
        """What the statements write."""
        told = {"reason": self.reason, "lost": self.lost, "by": self.by, "worker": placement.worker}
        return {**placement.parameters(), **told}


OVER = PlacementEnd(reason="the run is over")


def close_execution(
    placement: Placement, settlement: Settlement | None = UNKNOWN, *, ending: PlacementEnd = OVER
) -> ExecutionState | None:
    """Make a run whose outcome is set terminal and free its slot; none means that the fence refused.

    Without a settlement the run declares no resources, and nobody looks for any.
    """
    parameters = {**ending.parameters(placement), "endable": ENDABLE}
    row = _fetch(CLOSE, parameters, settlement)
    return ExecutionState(row[0]) if row else None


def hand_back(
    placement: Placement,
    ending: PlacementEnd,
    *,
    counted: bool | None = None,
    settlement: Settlement | None = UNKNOWN,
) -> ExecutionState | None:
    """Give the slot of a run without outcome away: it waits for its time or a person, or is queued to go on.

    None means that the fence refused. A loss is counted unless said otherwise, a drain is not. Not a run whose
    cancelling was asked for meanwhile: nobody would place it again, nor end it.
    """
    parameters = {
        **ending.parameters(placement),
        "counted": ending.lost if counted is None else counted,
        "requeueable": REQUEUEABLE,
        "resettable": RESETTABLE,
    }
    row = _fetch(HAND_BACK, parameters, settlement)
    return ExecutionState(row[0]) if row else None


def restart(
    placement: Placement, *, reason: str, settlement: Settlement | None = UNKNOWN
) -> int | None:
    """Begin a new placement on the same worker; returns its epoch, none if the fence refused."""
    row = _fetch(RESTART, {**placement.parameters(), "reason": reason}, settlement)
    return row[0] if row else None


def _fetch(statement: str, parameters: dict[str, Any], settlement: Settlement | None) -> Row | None:
    if settlement is None:
        return fetch_row(PLAIN[statement], parameters)
    parameters |= {
        "held": tracked_as_json(settlement.tracked),
        "held_ids": [resource.resource_id for resource in settlement.tracked],
        "revoked": list(settlement.revoked),
    }
    return fetch_row(SETTLING[statement], parameters)


def set_outcome(placement: Placement, outcome: ExecutionState, *, code: str, message: str) -> bool:
    """Decide how a run ends in which no step is at work; false if it has an outcome or the fence refused."""
    cancelled = outcome is ExecutionState.CANCELLED
    parameters = {
        **placement.parameters(),
        "outcome": outcome.value,
        "code": code,
        "message": message,
        "step_state": (StepState.CANCELLED if cancelled else StepState.FAILED).value,
        "cuttable": CUTTABLE,
    }
    return fetch_row(SET_OUTCOME, parameters) is not None
