"""Log lines and progress of an attempt, written while it runs; one statement."""

from collections.abc import Sequence

from executions.semantics.attempt_record import LogLine
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE, FENCE_PARAMETERS
from executions.transitions.log_lines import INSERTED_LINES, LINE_PARAMETERS, line_columns
from executions.transitions.rows import RunRow
from resources.placement import Placement
from tenants.statement import Statement, compose

# Lines come in the order of time: with one as young as the first of these, all of them are written.
_LOCKED_RUN = """locked AS (
    SELECT e.id, e.last_log FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.outcome = '' AND NOT EXISTS (
        SELECT 1 FROM executions_steplog l
        WHERE l.execution_id = fence.execution_id AND l.step = %(path)s::text AND l.attempt = %(attempt)s::int
          AND l.at >= %(first_at)s::timestamptz)
    FOR NO KEY UPDATE OF e
)"""

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'step.progress', %(path)s::text, jsonb_build_object(
               'attempt', %(attempt)s::int, 'fraction', %(fraction)s::float8, 'message', %(text)s::text)
    WHERE %(fraction)s::float8 IS NOT NULL
    UNION ALL
    SELECT 2, 'step.log', %(path)s::text, jsonb_build_object(
               'attempt', %(attempt)s::int, 'lines', %(lines)s::int, 'last_log', locked.last_log + %(lines)s::int)
    FROM locked WHERE %(lines)s::int > 0
)"""

_LONGER_RUN = f"""run AS (
    UPDATE executions_execution e
    SET last_log = e.last_log + %(lines)s::int, last_event = e.last_event + {EVENT_COUNT}
    FROM locked WHERE e.id = locked.id
    RETURNING e.id, e.last_log, e.last_event
)"""  # noqa: S608 - all constants

# Locks:   the ticket FOR SHARE, the run.
# Guard:   fence; run without outcome; none of the lines is written.
# Writes:  the lines, and how many the run has.
# Events:  step.progress if there is any, step.log if there are lines.
# Returns: the run; no row if they are written, or it is refused.
APPEND_OUTPUT = Statement(
    "append_output",
    compose(
        FENCE,
        _LOCKED_RUN,
        _HAPPENED,
        _LONGER_RUN,
        EVENTS,
        INSERTED_LINES,
        then="SELECT id FROM run",
    ),
    parameters=(
        *FENCE_PARAMETERS, *LINE_PARAMETERS, "path", "attempt", "lines", "first_at", "fraction", "text",
    ),
    row=RunRow,
)  # fmt: skip


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
    return APPEND_OUTPUT.fetch(parameters) is not None
