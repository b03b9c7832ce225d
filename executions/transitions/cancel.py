"""Cancelling: a waiting run ends at once, a placed one is asked to."""

from uuid import UUID

from executions.states import ExecutionState
from executions.transitions.fence import fetch_row
from executions.transitions.waiting import end_waiting
from isolane.results import Code

CANCEL_PLACED = """
UPDATE public.placement_ticket SET cancel_requested = true
WHERE execution_id = %(execution)s::uuid AND state = 'placed' RETURNING execution_id"""


def cancel(execution_id: UUID, *, message: str) -> ExecutionState | None:
    """Cancelled if it waited, running if its worker was asked to stop it, none if it has already ended."""
    # Between the two statements a waiting ticket may be placed or a placed one handed back: look again.
    for _ in range(3):
        if end_waiting(
            execution_id, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message
        ):
            return ExecutionState.CANCELLED
        if fetch_row(CANCEL_PLACED, {"execution": execution_id}):
            return ExecutionState.RUNNING
    return None
