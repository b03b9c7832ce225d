"""Writing why a run waits."""

from uuid import UUID

from executions.states import ExecutionState
from executions.transitions.rows import RunRow
from tenants.statement import Statement

# Locks:   the run.
# Guard:   it is queued, without outcome, and nothing was written before.
# Writes:  its message, which the first claim clears.
# Events:  none.
# Returns: the run; no row if it was written before.
EXPLAIN_WAITING = Statement(
    "explain_waiting",
    f"""
UPDATE executions_execution SET message = %(message)s::text
WHERE id = %(execution)s::uuid AND state = '{ExecutionState.QUEUED}' AND outcome = '' AND message = '' RETURNING id""",  # noqa: S608 - a constant
    parameters=("execution", "message"),
    row=RunRow,
)


def explain_waiting(execution_id: UUID, message: str) -> bool:
    """Write why a run waits, once; the first claim clears it. False if it was written before."""
    return EXPLAIN_WAITING.fetch({"execution": execution_id, "message": message}) is not None
