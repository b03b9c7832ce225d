"""The end of a context: torn down first, written second. A run is terminal only when its context is gone.

Timing: background-worker. Model: sync. Guarantee: at-least-once; closing twice does nothing the second time.
Failure: a teardown that fails is logged and stops nothing; a write that fails is repeated by the worker's loop.
"""

import logging

from django.db import Error as DatabaseError

from executions.dispatch import admit_and_send
from executions.models import Execution
from executions.scope import run_scope
from executions.states import ExecutionState
from executions.transitions.close import close_execution, hand_back, set_outcome
from executions.transitions.fence import Placement
from executions.worker.contexts import OpenContext
from executions.worker.machine import Machine
from isolane.results import Code
from tenants.selectors import schema_of

CLOSE_SECONDS = 4
MAX_LOSSES = 5
logger = logging.getLogger(__name__)


def close_context(machine: Machine, context: OpenContext) -> None:
    """Tear down, then write the run's terminal state and free its slot, unless the placement is lost."""
    tear_down(context)
    if context.lost:
        return
    try:
        with run_scope(context.placement.tenant_id):
            state = close_execution(context.placement)
    except DatabaseError:
        machine.contexts.put_back(context)
        raise
    logger.info(
        "run closed", extra={"event": "RUN_CLOSED", **ids(context.placement), "state": state}
    )
    admit_and_send()


def tear_down(context: OpenContext) -> None:
    """End the runtime's part of the context."""
    if context.runtime is None:
        return
    for error in context.runtime.close(CLOSE_SECONDS):
        logger.error(
            "teardown: %s", error, extra={"event": "TEARDOWN_FAILED", **ids(context.placement)}
        )


def end_without_link(placement: Placement, *, cancel: bool, reason: str, lost: bool) -> None:
    """End a placement in which no link is active: closed if its run has an outcome, else back to the queue."""
    with run_scope(placement.tenant_id):
        if cancel:
            message = "Cancelled before its next step."
            set_outcome(placement, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message)
        elif lost and _losses(placement) + 1 >= MAX_LOSSES:
            # A poison run must not take worker after worker.
            message = f"Its worker was lost {MAX_LOSSES} times in a row at the same step."
            set_outcome(placement, ExecutionState.FAILED, code=Code.WORKER_LOST, message=message)
        if close_execution(placement) is None and hand_back(placement, reason=reason, lost=lost):
            logger.warning(
                "handed back: %s", reason, extra={"event": "HANDED_BACK", **ids(placement)}
            )


def _losses(placement: Placement) -> int:
    found = Execution.objects.filter(pk=placement.execution_id).values_list("losses", flat=True)
    return found.first() or 0


def ids(placement: Placement) -> dict[str, object]:
    """What every log line of a run carries."""
    return {
        "execution_id": str(placement.execution_id),
        "tenant_id": schema_of(placement.tenant_id),
        "epoch": placement.epoch,
    }
