"""Claiming a step: the right to run it once under this placement."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

from executions.states import (
    CLAIMABLE_STEP,
    EXECUTION_TRANSITIONS,
    TERMINAL_STEP,
    ExecutionState,
    sources,
)
from executions.transitions.fence import (
    FENCE_UNLESS_CANCELLED,
    LOCKED_RUN,
    Placement,
    fetch_repeatedly,
    fetch_row,
)
from tenants.statement import text_set

RUNNABLE = text_set(
    [*sources(EXECUTION_TRANSITIONS, ExecutionState.RUNNING), ExecutionState.RUNNING.value]
)
CLAIMABLE = text_set(sorted(CLAIMABLE_STEP))

CLAIM = f"""
WITH {FENCE_UNLESS_CANCELLED}, {LOCKED_RUN}, step AS (
    UPDATE executions_step s
    SET state = 'running', attempt = s.attempt + 1, epoch = %(epoch)s::int, started_at = now(),
        finished_at = NULL, token = %(token)s::uuid
    FROM locked
    WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.execution_id = locked.id
      AND locked.state = ANY({RUNNABLE}) AND locked.wake_at IS NULL AND s.path = locked.next_step
      AND s.state = ANY({CLAIMABLE})
    RETURNING s.execution_id, s.attempt, s.recovering, s.code, s.message,
              extract(epoch FROM s.retry_at - now())::float8 AS wait_s
), run AS (
    UPDATE executions_execution e
    SET state = 'running', started_at = coalesce(e.started_at, now()), worker = %(worker)s::text, message = '',
        announced_epoch = %(epoch)s::int, last_event = e.last_event + 1 + locked.unseen::int
    FROM step, locked WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event, e.version, locked.unseen
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event - 1, now(), 'placement.began', '',
           jsonb_build_object('epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM run WHERE run.unseen
    UNION ALL
    SELECT run.id, run.last_event, now(), 'step.started', %(path)s::text,
           jsonb_build_object('attempt', step.attempt, 'epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM run, step
)
SELECT run.version, step.attempt, fence.left_s, step.wait_s, step.recovering, step.code, step.message
FROM step, run, fence"""  # noqa: S608 - all constants

# Why a claim got no row: asked only then.
REASON = """
SELECT s.state, s.epoch,
       EXISTS (SELECT 1 FROM public.placement_ticket t WHERE t.execution_id = s.execution_id
               AND t.epoch = %(epoch)s::int AND t.worker_id = %(boot)s::uuid AND t.state = 'placed')
FROM executions_step s WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text"""
# Its own token says that it was written, and only the answer lost.
CLAIMED = """
SELECT e.version, s.attempt, coalesce(extract(epoch FROM t.deadline - now())::float8, t.time_left),
       extract(epoch FROM s.retry_at - now())::float8, s.recovering, s.code, s.message
FROM executions_step s
JOIN executions_execution e ON e.id = s.execution_id
JOIN public.placement_ticket t ON t.execution_id = s.execution_id
WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.token = %(token)s::uuid
  AND s.state = 'running'"""


class Refusal(StrEnum):
    """Why a step could not be claimed."""

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
        lambda: fetch_row(CLAIM, parameters) or fetch_row(CLAIMED, parameters), may_repeat
    )
    if row:
        version, *claimed = row
        return claim_of(version, *claimed, asked_at=asked_at)
    reason = fetch_repeatedly(lambda: fetch_row(REASON, parameters), may_repeat)
    if reason is None or not reason[2]:
        return Refusal.STALE
    state, epoch, _ = reason
    return Refusal.DONE if state in TERMINAL_STEP and epoch < placement.epoch else Refusal.DUPLICATE


def claim_of(
    version: int,
    attempt: int,
    left_s: float,
    wait_s: float | None,
    recovering: bool,  # noqa: FBT001 - as the row has it
    code: str,
    message: str,
    *,
    asked_at: float,
) -> Claim:
    """A claim from the columns of its statement."""
    return Claim(
        attempt=attempt,
        version=version,
        left_s=left_s,
        at=asked_at,
        wait_s=max(wait_s or 0.0, 0.0),
        recovering=recovering,
        code=code,
        message=message,
    )
