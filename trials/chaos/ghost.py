"""A worker that others hold for lost, and that writes all the same: every one of its writes must be refused.

Timing: some milliseconds. Model: sync, main thread. Guarantee: it changes nothing, unless the fence lets it in.
Failure: bubble; the caller knows what to do about a database that is away.
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
from executions.transitions.fence import Placement
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from isolane.results import Code

NAME = "ghost"
GONE = PlacementEnd(reason=EndReason.WORKER_STOPPED)


def let_in(ticket: Ticket) -> Iterator[str]:
    """The writes that the fence did not refuse, for a placement that is over and for one that never was."""
    if ticket.worker_id is None:
        return
    now = Placement(
        tenant_id=ticket.tenant_id,
        execution_id=ticket.execution_id,
        epoch=ticket.epoch,
        boot=ticket.worker_id,
        worker=NAME,
    )
    with run_scope(ticket.tenant_id):
        step = Execution.objects.values_list("next_step", flat=True).get(pk=ticket.execution_id)
        for whose in (replace(now, epoch=now.epoch - 1), replace(now, boot=uuid4())):
            for what, write in _writes(whose, step).items():
                if write():
                    yield f"{what} of {whose.execution_id} under epoch {whose.epoch}, now {now.epoch}"


def _writes(whose: Placement, step: str) -> dict[str, Callable[[], bool]]:
    return {
        "claim": lambda: isinstance(claim_step(whose, step, worker=NAME), Claim),
        "outcome": lambda: set_outcome(
            whose, ExecutionState.FAILED, code=Code.UNKNOWN_ERROR, message=NAME
        ),
        "close": lambda: close_execution(whose) is not None,
        "restart": lambda: restart(whose, reason=EndReason.RUNTIME_ENDED) is not None,
        "hand back": lambda: hand_back(whose, GONE) is not None,
    }
