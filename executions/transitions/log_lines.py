"""The log lines of an attempt, as rows of its run."""

from collections.abc import Sequence
from typing import Any

from executions.semantics.attempt_record import LogLine

LINE_PARAMETERS = ("times", "levels", "messages")

# Behind a CTE `run`, which has added %(lines)s to the run's `last_log` and gives it back.
INSERTED_LINES = """logs AS (
    INSERT INTO executions_steplog (execution_id, number, at, step, attempt, level, message)
    SELECT run.id, run.last_log - %(lines)s::int + line.number, line.at, %(path)s::text, %(attempt)s::int, line.level,
           line.message
    FROM run, unnest(%(times)s::timestamptz[], %(levels)s::text[], %(messages)s::text[])
              WITH ORDINALITY AS line(at, level, message, number)
)"""


def line_columns(lines: Sequence[LogLine]) -> dict[str, Any]:
    """Lines as the columns of an unnest."""
    return {
        "times": [line.at for line in lines],
        "levels": [line.level for line in lines],
        "messages": [line.message for line in lines],
    }
