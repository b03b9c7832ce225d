"""The statement of a checkpoint, put together from what an attempt has left behind."""

import functools
from itertools import chain
from typing import NamedTuple

from executions.states import STEP_TRANSITIONS, TERMINAL_STEP, StepState
from executions.transitions.claim import MAY_BE_CLAIMED
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE, FENCE_PARAMETERS, LOCKED_RUN
from executions.transitions.guards import may_become
from executions.transitions.log_lines import INSERTED_LINES, LINE_PARAMETERS
from executions.transitions.record_parts import TRACKED_RECORDS
from tenants.statement import Statement, compose

_MAY_END = may_become(
    STEP_TRANSITIONS,
    *TERMINAL_STEP,
    StepState.RETRYING,
    StepState.SUSPENDED,
    only={StepState.RUNNING},
)


class CheckpointRow(NamedTuple):
    """The run's new version, what its tenant has spent, and the claim of the next step, if that was made."""

    version: int
    monthly: str | None
    attempt: int | None
    left_s: float | None
    wait_s: float | None
    recovering: bool | None
    code: str | None
    message: str | None


_ENDED_STEP = f"""step AS (
    UPDATE executions_step s
    SET state = %(state)s::text, inputs = %(inputs)s::jsonb, output = %(output)s::jsonb,
        sealed_output = %(sealed_output)s::bytea, code = %(code)s::text, message = %(message)s::text,
        cause = %(cause)s::text, recovering = %(recovering)s::bool, token = %(token)s::uuid,
        retry_at = now() + make_interval(secs => %(retry_s)s::float8),
        finished_at = CASE WHEN %(ended)s::bool THEN now() END
    FROM locked
    WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.execution_id = locked.id
      AND locked.version = %(version)s::int
      AND s.state {_MAY_END} AND s.epoch = %(epoch)s::int AND s.attempt = %(attempt)s::int
    RETURNING s.execution_id, now() - s.started_at AS took, locked.last_log
)"""  # noqa: S608 - all constants

# The next step is claimed with it, for a chain and on the express lane: the same guards as in a claim of its own, one
# statement less.
_CLAIMED_NEXT = f"""next AS (
    UPDATE executions_step n
    SET state = '{StepState.RUNNING}', attempt = n.attempt + 1, epoch = %(epoch)s::int, started_at = now(),
        finished_at = NULL, token = NULL
    FROM step, fence
    WHERE n.execution_id = %(execution)s::uuid AND n.path = %(next)s::text AND n.execution_id = step.execution_id
      AND n.state {MAY_BE_CLAIMED} AND NOT fence.cancel_requested
    RETURNING n.attempt, n.recovering, n.code, n.message, extract(epoch FROM n.retry_at - now())::float8 AS wait_s
)"""  # noqa: S608 - all constants

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'step.' || %(state)s::text, %(path)s::text, jsonb_strip_nulls(jsonb_build_object(
               'attempt', %(attempt)s::int, 'code', nullif(%(code)s::text, ''),
               'ms', round(extract(epoch FROM step.took) * 1000), 'retry_s', %(retry_s)s::float8,
               'wake_s', %(wake_s)s::float8, 'recovering', nullif(%(recovering)s::bool, false),
               'unbilled', nullif(%(unbilled)s::bool, false),
               'last_log', nullif(step.last_log + %(lines)s::int, 0)))
    FROM step"""
_AND_STARTED = """
    UNION ALL
    SELECT 2, 'step.started', %(next)s::text,
           jsonb_build_object('attempt', next.attempt, 'epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM next"""

_ADVANCED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET version = e.version + 1, losses = 0, next_step = %(next)s::text, outcome = %(outcome)s::text,
        wake_at = now() + make_interval(secs => %(wake_s)s::float8), last_event = e.last_event + {EVENT_COUNT},
        last_log = e.last_log + %(lines)s::int, code = %(run_code)s::text, message = %(run_message)s::text"""  # noqa: S608 - all constants
_COLUMNS = {
    "costs": ", costs = %(costs)s::jsonb",
    "variables": ", variables = %(variables)s::jsonb, sealed_variables = %(sealed_variables)s::bytea",
    "outputs": ", outputs = %(outputs)s::jsonb",
    "asks": ", question = %(question)s::text",
}
_OF_THE_STEP = """
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event, e.last_log, e.version
)"""

_COSTS = """record AS (
    INSERT INTO executions_costrecord (execution_id, step, attempt, kind, amount, at)
    SELECT run.id, %(path)s::text, %(attempt)s::int, cost.kind, cost.amount, now()
    FROM run, unnest(%(kinds)s::text[], %(amounts)s::numeric[]) AS cost(kind, amount)
), monthly AS (
    INSERT INTO executions_monthlycost AS m (month, kind, amount)
    SELECT date_trunc('month', now() AT TIME ZONE 'UTC')::date, cost.kind, cost.amount
    FROM run, unnest(%(kinds)s::text[], %(amounts)s::numeric[]) AS cost(kind, amount) ORDER BY cost.kind
    ON CONFLICT (month, kind) DO UPDATE SET amount = m.amount + excluded.amount
    RETURNING m.kind, m.amount
)"""

_MONTHLY = "(SELECT jsonb_object_agg(kind, amount)::text FROM monthly) AS monthly"
_NO_MONTHLY = "NULL AS monthly"
_CLAIM = "next.attempt, fence.left_s, next.wait_s, next.recovering, next.code, next.message"
_NO_CLAIM = "NULL AS attempt, NULL AS left_s, NULL AS wait_s, NULL AS recovering, NULL AS code, NULL AS message"
_JOINED = " FROM run CROSS JOIN fence LEFT JOIN next ON true"

_ALWAYS = (
    *FENCE_PARAMETERS, "path", "attempt", "version", "state", "ended", "inputs", "output", "sealed_output", "code",
    "message", "cause", "recovering", "retry_s", "unbilled", "token", "lines", "next", "outcome", "wake_s",
    "run_code", "run_message",
)  # fmt: skip
_PARAMETERS = {
    "logs": LINE_PARAMETERS,
    "costs": ("costs", "kinds", "amounts"),
    "variables": ("variables", "sealed_variables"),
    "outputs": ("outputs",),
    "asks": ("question",),
    "claims": ("worker",),
    "tracked": ("tracked",),
}


# Locks:   the ticket FOR SHARE, the run, the step, the next step.
# Guard:   fence; run without outcome, of the version that was read; the attempt is the one that was claimed.
# Writes:  step, run, lines, costs, resources; the next step is running, if it is to be claimed and no cancel asked for.
# Events:  step.<state>; step.started of the next step.
# Returns: the new version, what was spent this month, the claim of the next step; no row if it is refused.
@functools.cache
def checkpoint_statement(
    *,
    logs: bool,
    costs: bool,
    variables: bool,
    outputs: bool,
    asks: bool,
    claims: bool,
    tracked: bool,
) -> Statement[CheckpointRow]:
    """Compose the checkpoint: most steps say, cost and set nothing, and what does not happen is not even planned."""
    wanted = {
        "logs": logs,
        "costs": costs,
        "variables": variables,
        "outputs": outputs,
        "asks": asks,
        "claims": claims,
        "tracked": tracked,
    }
    parts = [
        FENCE,
        LOCKED_RUN,
        _ENDED_STEP,
        _CLAIMED_NEXT if claims else "",
        _HAPPENED + (_AND_STARTED if claims else "") + ")",
        _ADVANCED_RUN + "".join(_COLUMNS[name] for name in _COLUMNS if wanted[name]) + _OF_THE_STEP,
        EVENTS,
        INSERTED_LINES if logs else "",
        _COSTS if costs else "",
        TRACKED_RECORDS if tracked else "",
    ]
    then = [
        "SELECT run.version",
        _MONTHLY if costs else _NO_MONTHLY,
        _CLAIM if claims else _NO_CLAIM,
    ]
    added = [_PARAMETERS[name] for name, is_wanted in wanted.items() if is_wanted]
    return Statement(
        "checkpoint",
        compose(*filter(None, parts), then=", ".join(then) + (_JOINED if claims else " FROM run")),
        parameters=(*_ALWAYS, *chain.from_iterable(added)),
        row=CheckpointRow,
    )


# Locks:   nothing.
# Guard:   its own token says that the checkpoint was written, and only the answer lost.
# Writes:  nothing.
# Events:  none.
# Returns: as the checkpoint does, but for what was spent; no row if it was not written.
WRITTEN_CHECKPOINT = Statement(
    "written_checkpoint",
    f"""
SELECT e.version, NULL AS monthly, next.attempt,
       coalesce(extract(epoch FROM t.deadline - now())::float8, t.time_left) AS left_s,
       extract(epoch FROM next.retry_at - now())::float8 AS wait_s, next.recovering, next.code, next.message
FROM executions_step s
JOIN executions_execution e ON e.id = s.execution_id
JOIN public.placement_ticket t ON t.execution_id = e.id
LEFT JOIN executions_step next
       ON next.execution_id = e.id AND next.path = %(next)s::text AND next.state = '{StepState.RUNNING}'
      AND next.epoch = %(epoch)s::int AND %(claims)s::bool
WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.token = %(token)s::uuid""",  # noqa: S608 - a constant
    parameters=("execution", "epoch", "path", "token", "next", "claims"),
    row=CheckpointRow,
)
