"""The checkpoint: how an attempt ended, the step that is next and, at the end, the run's outcome; one statement."""

import functools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

from executions.semantics.attempt_record import AttemptRecord, LogLine
from executions.semantics.decisions import Checkpoint
from executions.semantics.resource_tracker import TrackedResource
from executions.states import TERMINAL_STEP
from executions.transitions.claim import CLAIMABLE, Claim, claim_of
from executions.transitions.fence import (
    FENCE,
    LOCKED_RUN,
    Placement,
    fetch_repeatedly,
    fetch_row,
)
from executions.transitions.ledger import HELD, tracked_as_json

_CHECKPOINT = f"""
WITH {FENCE}, {LOCKED_RUN}, step AS (
    UPDATE executions_step s
    SET state = %(state)s::text, inputs = %(inputs)s::jsonb, output = %(output)s::jsonb,
        sealed_output = %(sealed_output)s::bytea, code = %(code)s::text, message = %(message)s::text,
        cause = %(cause)s::text, recovering = %(recovering)s::bool, token = %(token)s::uuid,
        retry_at = now() + make_interval(secs => %(retry_s)s::float8),
        finished_at = CASE WHEN %(ended)s::bool THEN now() END
    FROM locked
    WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.execution_id = locked.id
      AND locked.version = %(version)s::int
      AND s.state = 'running' AND s.epoch = %(epoch)s::int AND s.attempt = %(attempt)s::int
    RETURNING s.execution_id, now() - s.started_at AS took
){{claimed}}, run AS (
    UPDATE executions_execution e
    SET version = e.version + 1, losses = 0, next_step = %(next)s::text, outcome = %(outcome)s::text,
        wake_at = now() + make_interval(secs => %(wake_s)s::float8), last_event = e.last_event + 1{{more_events}},
        last_log = e.last_log + %(lines)s::int,
        code = %(run_code)s::text, message = %(run_message)s::text{{columns}}
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event, e.last_log, e.version
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event{{fewer_events}}, now(), 'step.' || %(state)s::text, %(path)s::text,
           jsonb_strip_nulls(jsonb_build_object(
               'attempt', %(attempt)s::int, 'code', nullif(%(code)s::text, ''),
               'ms', round(extract(epoch FROM step.took) * 1000), 'retry_s', %(retry_s)s::float8,
               'wake_s', %(wake_s)s::float8, 'recovering', nullif(%(recovering)s::bool, false),
               'unbilled', nullif(%(unbilled)s::bool, false),
               'last_log', nullif(run.last_log, 0)))
    FROM run, step
){{parts}}
SELECT run.version{{selected}} FROM run{{joined}}"""  # noqa: S608 - the fence is a constant

# On the express lane the next step is claimed with it: the same guards as in a claim of its own, one statement less.
_CLAIMED = f""", next AS (
    UPDATE executions_step n
    SET state = 'running', attempt = n.attempt + 1, epoch = %(epoch)s::int, started_at = now(), finished_at = NULL,
        token = NULL
    FROM step, fence
    WHERE n.execution_id = %(execution)s::uuid AND n.path = %(next)s::text AND n.execution_id = step.execution_id
      AND n.state = ANY({CLAIMABLE}) AND NOT fence.cancel_requested
    RETURNING n.attempt, n.recovering, n.code, n.message, extract(epoch FROM n.retry_at - now())::float8 AS wait_s
)"""  # noqa: S608 - all constants

_STARTED = """, started AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event, now(), 'step.started', %(next)s::text,
           jsonb_build_object('attempt', next.attempt, 'epoch', %(epoch)s::int, 'worker', %(worker)s::text)
    FROM run, next
)"""

_LOGS = """, logs AS (
    INSERT INTO executions_steplog (execution_id, number, at, step, attempt, level, message)
    SELECT run.id, run.last_log - %(lines)s::int + line.number, line.at, %(path)s::text, %(attempt)s::int, line.level,
           line.message
    FROM run, unnest(%(times)s::timestamptz[], %(levels)s::text[], %(messages)s::text[])
              WITH ORDINALITY AS line(at, level, message, number)
)"""

_COSTS = """, record AS (
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

_COLUMNS = {
    "costs": ", costs = %(costs)s::jsonb",
    "variables": ", variables = %(variables)s::jsonb, sealed_variables = %(sealed_variables)s::bytea",
    "outputs": ", outputs = %(outputs)s::jsonb",
    "asks": ", question = %(question)s::text",
}
_MONTHLY = "(SELECT jsonb_object_agg(kind, amount)::text FROM monthly)"
_CLAIM = "next.attempt, fence.left_s, next.wait_s, next.recovering, next.code, next.message"
_NO_CLAIM = "NULL, NULL, NULL, NULL, NULL, NULL"

WRITTEN = """
SELECT e.version, NULL, next.attempt, coalesce(extract(epoch FROM t.deadline - now())::float8, t.time_left),
       extract(epoch FROM next.retry_at - now())::float8, next.recovering, next.code, next.message
FROM executions_step s
JOIN executions_execution e ON e.id = s.execution_id
JOIN public.placement_ticket t ON t.execution_id = e.id
LEFT JOIN executions_step next ON next.execution_id = e.id AND next.path = %(next)s::text AND next.state = 'running'
     AND next.epoch = %(epoch)s::int AND %(claims)s::bool
WHERE s.execution_id = %(execution)s::uuid AND s.path = %(path)s::text AND s.token = %(token)s::uuid"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The checkpoint is in the database."""

    version: int
    monthly: Mapping[str, Decimal]  # what the tenant has spent this month of the kinds just spent
    claim: Claim | None = None  # of the next step, if that was asked for and could be


def write_checkpoint(
    placement: Placement,
    record: AttemptRecord,
    decided: Checkpoint,
    *,
    claim_next_for: str = "",
    tracked: Sequence[TrackedResource] = (),
    may_repeat: Callable[[], bool] = lambda: False,
) -> Written | None:
    """Write it; none means that the fence or the version refused, and nothing was written.

    `claim_next_for`: the worker's name, if the step that follows is to be claimed with it. `tracked`: what has become
    of the run's resources. `may_repeat`: asked, and
    waited for, after the database did not answer: what a step came to must not be lost with a connection.
    """
    parameters = {**placement.parameters(), **_decision(decided), **_record(record)}
    parameters |= {"claims": bool(claim_next_for), "worker": claim_next_for}
    if tracked:
        parameters["held"] = tracked_as_json(tracked)
    statement = _statement(
        logs=bool(record.lines),
        costs=bool(record.costs),
        variables=record.variables is not None,
        outputs=record.outputs is not None,
        asks=bool(record.question),
        claims=bool(claim_next_for),
        held=bool(tracked),
    )
    asked_at = time.monotonic()
    # After a lost connection an earlier try may have been written: then our own token is found.
    row = fetch_repeatedly(
        lambda: fetch_row(statement, parameters) or fetch_row(WRITTEN, parameters), may_repeat
    )
    if row is None:
        return None
    version, monthly, *claimed = row
    return Written(
        version=version,
        monthly=json.loads(monthly, parse_float=Decimal, parse_int=Decimal) if monthly else {},
        claim=claim_of(version, *claimed, asked_at=asked_at) if claimed[0] is not None else None,
    )


@functools.cache
def _statement(
    *, logs: bool, costs: bool, variables: bool, outputs: bool, asks: bool, claims: bool, held: bool
) -> str:
    """Most steps say, cost and set nothing: what does not happen is not even planned."""
    wanted = {"costs": costs, "variables": variables, "outputs": outputs, "asks": asks}
    columns = "".join(text for name, text in _COLUMNS.items() if wanted[name])
    parts = ((claims, _STARTED), (logs, _LOGS), (costs, _COSTS), (held, HELD))
    return _CHECKPOINT.format(
        claimed=_CLAIMED if claims else "",
        more_events=" + (SELECT count(*) FROM next)" if claims else "",
        fewer_events=" - (SELECT count(*) FROM next)" if claims else "",
        columns=columns,
        parts="".join(text for happens, text in parts if happens),
        selected=f", {_MONTHLY if costs else 'NULL'}, {_CLAIM if claims else _NO_CLAIM}",
        joined=" CROSS JOIN fence LEFT JOIN next ON true" if claims else "",
    )


def _decision(decided: Checkpoint) -> dict[str, Any]:
    return {
        "state": decided.state.value,
        "ended": decided.state in TERMINAL_STEP,
        "next": decided.next_step,
        "outcome": decided.outcome.value if decided.outcome else "",
        "retry_s": decided.retry_s,
        "wake_s": decided.wake_s or None,
        "recovering": decided.recovering,
    }


def _record(record: AttemptRecord) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "path": record.path,
        "attempt": record.attempt,
        "version": record.version,
        "inputs": record.inputs,
        "output": record.output,
        "sealed_output": record.sealed_output,
        "code": record.code,
        "message": record.message,
        "cause": record.cause,
        "question": record.question,
        "unbilled": record.unbilled,
        "run_code": record.run_code,
        "run_message": record.run_message,
        "lines": len(record.lines),
        "token": uuid4(),
    }
    if record.lines:
        parameters |= line_columns(record.lines)
    if record.costs:
        parameters |= {
            "kinds": list(record.costs),
            "amounts": list(record.costs.values()),
            "costs": _as_json(record.run_costs),
        }
    if record.variables is not None:
        parameters |= {"variables": record.variables, "sealed_variables": record.sealed_variables}
    if record.outputs is not None:
        parameters["outputs"] = record.outputs
    return parameters


def _as_json(amounts: Mapping[str, Decimal]) -> str:
    """Exact: money must not pass through a float. Kinds are plain names."""
    return "{" + ", ".join(f'"{kind}": {amount:f}' for kind, amount in amounts.items()) + "}"


def line_columns(lines: Sequence[LogLine]) -> dict[str, Any]:
    """Lines as the columns of an unnest."""
    return {
        "times": [line.at for line in lines],
        "levels": [line.level for line in lines],
        "messages": [line.message for line in lines],
    }
