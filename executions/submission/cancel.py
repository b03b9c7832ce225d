"""Cancel a run.

Timing: request-time; the worker of a running one ends it within seconds.
Model: sync.
Guarantee: idempotent until the run has ended.
Failure: bubble, as an IsolaneError with code and field.
"""

from uuid import UUID

from executions.models import Execution
from executions.states import ExecutionState
from executions.transitions.cancel import cancel
from foundation.errors import Conflict, NotFound


class AlreadyEnded(Conflict):
    """A run that has ended cannot be cancelled."""

    code = "already_ended"


def request_cancel(execution_id: UUID, *, actor: str) -> ExecutionState:
    """Cancel a run of the tenant entered and return its state; a running one ends within seconds."""
    state = cancel(execution_id, message=f"Cancelled by {actor}.", actor=actor)
    if state is None:
        found = Execution.objects.filter(pk=execution_id).values_list("state", flat=True).first()
        if found is None:
            raise NotFound(f"There is no execution exec_{execution_id}.", field="id")
        raise AlreadyEnded(f"The execution has already ended: {found}.", field="id")
    return state
