"""The checkpoint: what a step came to, the step that is next and, at the end, the run's outcome; one statement."""

from uuid import uuid4

from psycopg.types.json import Jsonb

from executions.decisions import Checkpoint
from executions.transitions.fence import FENCE, LOCKED_RUN, Placement, fetch_row
from isolane.results import StepResult

CHECKPOINT = f"""
WITH {FENCE}, {LOCKED_RUN}, step AS (
    UPDATE executions_step s
    SET state = %(state)s, output = %(output)s, code = %(code)s, message = %(message)s, cause = %(cause)s,
        token = %(token)s, finished_at = now()
    FROM locked WHERE s.execution_id = locked.id AND s.path = %(path)s AND s.state = 'running'
      AND s.epoch = %(epoch)s AND s.attempt = %(attempt)s
    RETURNING s.execution_id, s.finished_at - s.started_at AS took
), run AS (
    UPDATE executions_execution e
    SET version = e.version + 1, losses = 0, next_step = %(next)s, outcome = %(outcome)s, last_event = e.last_event + 1,
        code = CASE WHEN %(outcome)s IN ('', 'succeeded') THEN '' ELSE %(code)s END,
        message = CASE WHEN %(outcome)s IN ('', 'succeeded') THEN '' ELSE %(message)s END
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event, e.version
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event, now(), 'step.' || %(state)s, %(path)s,
           jsonb_build_object('attempt', %(attempt)s::int, 'code', %(code)s::text,
                              'ms', round(extract(epoch FROM step.took) * 1000))
    FROM run, step
)
SELECT version FROM run"""  # noqa: S608 - the fence is a constant

WRITTEN = "SELECT 1 FROM executions_step WHERE execution_id = %(execution)s AND path = %(path)s AND token = %(token)s"


def write_checkpoint(placement: Placement, result: StepResult, decided: Checkpoint) -> bool:
    """Write it; false means that the fence refused and nothing was written."""
    parameters = {
        **placement.parameters(),
        "path": result.step,
        "attempt": result.attempt,
        "state": decided.state.value,
        "next": decided.next_step,
        "outcome": decided.outcome.value if decided.outcome else "",
        "output": Jsonb(result.output),
        "code": result.code or "",
        "message": result.message or "",
        "cause": result.cause or "",
        "token": uuid4(),
    }
    # After a lost connection the first try may have been written: then our own token is found.
    return (
        fetch_row(CHECKPOINT, parameters) is not None or fetch_row(WRITTEN, parameters) is not None
    )
