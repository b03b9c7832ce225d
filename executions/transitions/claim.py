"""Claiming a step: the right to run it once under this placement."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import uuid4

from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_STEP,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import (
    FENCE_PARAMETERS,
    FENCE_UNLESS_CANCELLED,
    LOCKED_RUN,
    fetch_repeatedly,
)
from executions.transitions.guards import may_become
from resources.placement import Placement
from tenants.statement import Statement, compose

MAY_BE_CLAIMED = may_become(STEP_TRANSITIONS, StepState.RUNNING)
_MAY_RUN = may_become(EXECUTION_TRANSITIONS, ExecutionState.RUNNING, or_is=True)


class ClaimRow(NamedTuple):
    """A claim as its statements give it back."""

    version: int
    attempt: int
    left_s: float
    wait_s: float | None
    recovering: bool
    code: str
    message: str


class RefusedClaimRow(NamedTuple):
    """The step of a claim that got no row."""

    state: str
    epoch: int
    is_placed: bool


_CLAIMED_STEP = f"""step AS (
    UPDATE executions_step s
    SET state = '{StepState.RUNNING}', attempt = s.attempt + 1, epoch = %(epoch)s::int, started_at = now(),
        finished_at = NULL, token = %(token)s::uuid
    FROM locked
    WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.execution_id = locked.id
      AND locked.state {_MAY_RUN} AND locked.wake_at IS NULL AND s.path = locked.next_step
      AND s.state {MAY_BE_CLAIMED}
    RETURNING s.execution_id, s.attempt, s.recovering, s.code, s.message,
              extract(epoch FROM s.retry_at - now())::float8 AS wait_s
)"""  # noqa: S608 - all constants

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'placement.began', '', jsonb_build_object('epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM locked WHERE locked.unannounced
    UNION ALL
    SELECT 2, 'step.started', %(path)s::text,
           jsonb_build_object('attempt', step.attempt, 'epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM step
)"""

_RUNNING_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = '{ExecutionState.RUNNING}', started_at = coalesce(e.started_at, now()), worker = %(worker)s::text,
        message = '', announced_epoch = %(epoch)s::int, last_event = e.last_event + {EVENT_COUNT}
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event, e.version
)"""  # noqa: S608 - all constants

# Locks:   the ticket FOR SHARE, the run, the step.
# Guard:   fence, no cancel asked for; run without outcome or time to wait for, may run; step is next, may be claimed.
# Writes:  the step and the run are running, under this placement.
# Events:  placement.began with the first claim of a placement; step.started.
# Returns: the claim; no row if it is refused.
CLAIM = Statement(
    "claim",
    compose(
        FENCE_UNLESS_CANCELLED,
        LOCKED_RUN,
        _CLAIMED_STEP,
        _HAPPENED,
        _RUNNING_RUN,
        EVENTS,
        then="""
SELECT run.version, step.attempt, fence.left_s, step.wait_s, step.recovering, step.code, step.message
FROM step, run, fence""",
    ),
    parameters=(*FENCE_PARAMETERS, "path", "worker", "token"),
    row=ClaimRow,
)

# Locks:   nothing.
# Guard:   none; asked only when a claim got no row.
# Writes:  nothing.
# Events:  none.
# Returns: the step's state and placement, and whether the placement that claims it is valid.
REFUSED_CLAIM = Statement(
    "refused_claim",
    f"""
SELECT s.state, s.epoch,
       EXISTS (SELECT 1 FROM public.placement_ticket t
               WHERE t.execution_id = s.execution_id AND t.epoch = %(epoch)s::int AND t.worker_id = %(boot)s::uuid
                 AND t.state = '{TicketState.PLACED}') AS is_placed
FROM executions_step s WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text""",  # noqa: S608 - a constant
    parameters=(*FENCE_PARAMETERS, "path"),
    row=RefusedClaimRow,
)

# Locks:   nothing.
# Guard:   its own token says that the claim was written, and only the answer lost.
# Writes:  nothing.
# Events:  none.
# Returns: the claim; no row if it was not written.
WRITTEN_CLAIM = Statement(
    "written_claim",
    f"""
SELECT e.version, s.attempt, coalesce(extract(epoch FROM t.deadline - now())::float8, t.time_left) AS left_s,
       extract(epoch FROM s.retry_at - now())::float8 AS wait_s, s.recovering, s.code, s.message
FROM executions_step s
JOIN executions_execution e ON e.id = s.execution_id
JOIN public.placement_ticket t ON t.execution_id = s.execution_id
WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.token = %(token)s::uuid
  AND s.state = '{StepState.RUNNING}'""",  # noqa: S608 - a constant
    parameters=("execution", "path", "token"),
    row=ClaimRow,
)


class Refusal(StrEnum):
    """The reason why a step could not be claimed."""

    DUPLICATE = "duplicate"  # this placement has claimed it, or the run is ending
    STALE = "stale"  # the placement is over
    DONE = "done"  # it ended under an older placement: go on with the next


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The right to run one attempt."""

    attempt: int
    version: int  # of the run; the checkpoint must find the same
    left_s: float = 0.0  # for which the run may still hold its slot, from `at` on
    at: float = field(default=0.0, compare=False)  # when it was asked for, by this process's clock
    wait_s: float = 0.0  # before the attempt may begin
    recovering: bool = False  # the recovery node is to be run
    code: str = ""  # of the failure to recover from
    message: str = ""


def claim_step(
    placement: Placement,
    path: str,
    *,
    worker: str,
    may_repeat: Callable[[], bool] = lambda: False,
) -> Claim | Refusal:
    """Claim a step in one statement; only when that gives nothing, ask why.

    `may_repeat`: asked, and waited for, after the database did not answer. A claim that was written then is ours.
    """
    parameters = {**placement.parameters(), "path": path, "worker": worker, "token": uuid4()}
    asked_at = time.monotonic()
    row = fetch_repeatedly(
        lambda: CLAIM.fetch(parameters) or WRITTEN_CLAIM.fetch(parameters), may_repeat
    )
    if row:
        return claim_of(row, asked_at=asked_at)
    refused = fetch_repeatedly(lambda: REFUSED_CLAIM.fetch(parameters), may_repeat)
    if refused is None or not refused.is_placed:
        return Refusal.STALE
    ended_before = refused.state in TERMINAL_STEP and refused.epoch < placement.epoch
    return Refusal.DONE if ended_before else Refusal.DUPLICATE


def claim_of(row: ClaimRow, *, asked_at: float) -> Claim:
    """Return the claim that its statement has given back."""
    return Claim(
        attempt=row.attempt,
        version=row.version,
        left_s=row.left_s,
        at=asked_at,
        wait_s=max(row.wait_s or 0.0, 0.0),
        recovering=row.recovering,
        code=row.code,
        message=row.message,
    )
