"""What a step says and how far it is, while it runs; one statement."""

from collections.abc import Sequence

from executions.semantics.attempt_record import LogLine
from executions.transitions.checkpoint import line_columns
from executions.transitions.fence import FENCE, Placement, fetch_row

APPEND_OUTPUT = f"""
WITH {FENCE}, run AS (
    UPDATE executions_execution e
    SET last_log = e.last_log + %(lines)s::int,
        last_event = e.last_event + (%(lines)s::int > 0)::int + (%(fraction)s::float8 IS NOT NULL)::int
    FROM fence WHERE e.id = fence.execution_id AND e.outcome = ''
      -- Lines come in the order of time: with one as young as the first of these, all of them are written.
      AND NOT EXISTS (
          SELECT 1 FROM executions_steplog l
          WHERE l.execution_id = fence.execution_id AND l.step = %(path)s::text AND l.attempt = %(attempt)s::int
            AND l.at >= %(first_at)s::timestamptz)
    RETURNING e.id, e.last_log, e.last_event
), logs AS (
    INSERT INTO executions_steplog (execution_id, number, at, step, attempt, level, message)
    SELECT run.id, run.last_log - %(lines)s::int + line.number, line.at, %(path)s::text, %(attempt)s::int, line.level,
           line.message
    FROM run, unnest(%(times)s::timestamptz[], %(levels)s::text[], %(messages)s::text[])
              WITH ORDINALITY AS line(at, level, message, number)
), said AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'step.log', %(path)s::text,
           jsonb_build_object('attempt', %(attempt)s::int, 'lines', %(lines)s::int, 'last_log', last_log)
    FROM run WHERE %(lines)s::int > 0
), progress AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event - (%(lines)s::int > 0)::int, now(), 'step.progress', %(path)s::text,
           jsonb_build_object('attempt', %(attempt)s::int, 'fraction', %(fraction)s::float8, 'message', %(text)s::text)
    FROM run WHERE %(fraction)s::float8 IS NOT NULL
)
SELECT id FROM run"""  # noqa: S608 - the fence is a constant


def append_output(
    placement: Placement,
    path: str,
    attempt: int,
    *,
    lines: Sequence[LogLine],
    fraction: float | None,
    text: str,
) -> bool:
    """Write lines and the newest progress, once; false means that they are there, or that the fence refused."""
    parameters = {
        **placement.parameters(),
        **line_columns(lines),
        "path": path,
        "attempt": attempt,
        "lines": len(lines),
        "first_at": lines[0].at if lines else None,
        "fraction": fraction,
        "text": text,
    }
    return fetch_row(APPEND_OUTPUT, parameters) is not None
