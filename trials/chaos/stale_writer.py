"""Write like a worker that has lost its placement: the fence must refuse every such write.

Timing: some milliseconds.
Model: sync, main thread.
Guarantee: nothing changes, unless the fence is broken.
Failure: bubble; the caller handles a database that is down.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

from executions.models import Execution
from executions.placement.models import Ticket
from executions.placement.run_scope import run_scope
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.claim import Claim, claim_step
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from isolane.results import Code
from resources.placement import Placement

NAME = "stale-writer"
GONE = PlacementEnd(reason=EndReason.WORKER_STOPPED)


def accepted_writes(ticket: Ticket) -> Iterator[str]:
    """Yield the writes that the fence accepted, for a placement that is over and for one that never existed."""
    if ticket.worker_id is None:
        return
    current = Placement(
        tenant_id=ticket.tenant_id,
        execution_id=ticket.execution_id,
        epoch=ticket.epoch,
        boot=ticket.worker_id,
        worker=NAME,
        lane=NAME,
    )
    with run_scope(ticket.tenant_id):
        step = Execution.objects.values_list("next_step", flat=True).get(pk=ticket.execution_id)
        for stale in (replace(current, epoch=current.epoch - 1), replace(current, boot=uuid4())):
            for what, write in _writes(stale, step).items():
                if write():
                    yield f"{what} of {stale.execution_id}, epoch {stale.epoch}, now {current.epoch}"


def _writes(stale: Placement, step: str) -> dict[str, Callable[[], bool]]:
    return {
        "claim": lambda: isinstance(claim_step(stale, step, worker=NAME), Claim),
        "outcome": lambda: set_outcome(
            stale, ExecutionState.FAILED, code=Code.UNKNOWN_ERROR, message=NAME
        ),
        "close": lambda: close_execution(stale) is not None,
        "restart": lambda: restart(stale, reason=EndReason.RUNTIME_ENDED) is not None,
        "hand back": lambda: hand_back(stale, GONE) is not None,
    }
