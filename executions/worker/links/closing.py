"""The end of a context: torn down first, written second. A run is terminal only when its context is gone.

Timing: background-worker. Model: sync. Guarantee: at-least-once; closing twice does nothing the second time.
Failure: a teardown that fails is logged and stops nothing; a write that fails is repeated by the worker's loop.
"""

import logging
from collections.abc import Callable

from django.db import Error as DatabaseError

from executions.placement.chain import ChainSpec, publish_or_log
from executions.placement.run_scope import run_scope
from executions.selectors.active_run import InterruptedStep, interrupted_step, load_run
from executions.semantics.attempt import OVERDUE, Attempt
from executions.semantics.decisions import after_loss
from executions.states import ExecutionState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.close import (
    UNKNOWN,
    PlacementEnd,
    Settlement,
    close_execution,
    hand_back,
    restart,
    set_outcome,
)
from executions.transitions.fence import Placement
from executions.transitions.refusal import note_refusal
from executions.worker.boot import WorkerBoot
from executions.worker.links.context import Exit, OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.resources.revocation import revoke_credentials, settlement_of
from executions.worker.resources.tracking import track_runtime_end
from isolane.results import Code
from resources.runtimes.faults import reported

# For all disposals together: each has a time of its own, and those that hang stop no other.
CLOSE_SECONDS = 30
MAX_LOSSES = 5
logger = logging.getLogger(__name__)


def close_context(machine: WorkerBoot, context: OpenContext) -> None:
    """Tear down, then write what comes after it, unless the placement is lost."""
    dispose(context)
    if context.lost:
        return
    try:
        with run_scope(context.placement.tenant_id):
            if context.exit is Exit.RESTART:
                _restart(machine, context)
                return
            state = _leave(context)
            if state is None:
                note_refusal(context.placement, "close")
    except DatabaseError:
        machine.contexts.put_back(context)
        raise
    logger.info(
        "run closed", extra={"event": "RUN_CLOSED", **log_ids(context.placement), "state": state}
    )
    machine.admit()


def _leave(context: OpenContext) -> ExecutionState | None:
    settlement = settlement_of(context)
    if context.exit is not Exit.PARKED:
        return close_execution(context.placement, settlement)
    return hand_back(
        context.placement, PlacementEnd(reason="waits without a slot"), settlement=settlement
    )


def _restart(machine: WorkerBoot, context: OpenContext) -> None:
    """The runtime is dead and the run goes on: a new placement here, from the checkpoint."""
    placement = context.placement
    epoch = restart(placement, reason="its runtime ended", settlement=settlement_of(context))
    if epoch is None:
        note_refusal(placement, "close")
        return  # cancelled meanwhile, or over: the loop ends it
    spec = ChainSpec(
        tenant_id=placement.tenant_id,
        execution_id=placement.execution_id,
        epoch=epoch,
        lane=machine.lane,
        plan=context.run.plan,
        first=context.next_step,
    )
    publish_or_log(spec)


def dispose(context: OpenContext) -> None:
    """End the runtime's part of the context, then take away what was issued to it. Never raises."""
    tear_down(context)
    with reported("what was issued was not revoked"):  # the sweeper finds it in the ledger
        revoke_credentials(context)


def tear_down(context: OpenContext) -> None:
    """End the runtime's part of the context. Never raises: whatever goes wrong, the placement must get its end."""
    if context.runtime is None:
        return
    errors: tuple[str, ...] = ()
    with reported("a runtime was not closed"):
        errors = context.runtime.close(CLOSE_SECONDS)
    with reported("what a teardown came to was not told"):
        for error in errors:
            logger.error(
                "teardown: %s",
                context.run.memory.masker.mask(error),
                extra={"event": "TEARDOWN_FAILED", **log_ids(context.placement)},
            )
        track_runtime_end(context)


def end_without_link(
    placement: Placement,
    ending: PlacementEnd,
    *,
    cancel: bool = False,
    overdue: bool = False,
    dispose: Callable[[], Settlement | None] = lambda: UNKNOWN,
) -> None:
    """End a placement in which no link is active: closed if its run has an outcome, else back to the queue.

    `dispose` ends what is there of its context. The outcome is set before, so that no link begins meanwhile.
    """
    settled = False
    with run_scope(placement.tenant_id):
        if cancel:
            message = "Cancelled before its next step."
            set_outcome(placement, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message)
        elif overdue:
            end_overdue(placement)
        elif found := interrupted_step(placement):
            settled = _settled(placement, found, lost=ending.lost)
    settlement = dispose()
    with run_scope(placement.tenant_id):
        if close_execution(placement, settlement, ending=ending) is not None:
            return
        # What a loss came to is a checkpoint, and only losses without one between them are counted.
        counted = ending.lost and not settled
        if hand_back(placement, ending, counted=counted, settlement=settlement) is None:
            if not ending.by:  # who ends a placement of others may come second, which means nothing
                note_refusal(placement, "close")
            return
    logger.warning(
        "handed back: %s", ending.reason, extra={"event": "HANDED_BACK", **log_ids(placement)}
    )


def end_overdue(placement: Placement) -> bool:
    """The run has used up its time."""
    return set_outcome(placement, ExecutionState.TIMED_OUT, code=Code.TIMEOUT, message=OVERDUE)


def _settled(placement: Placement, found: InterruptedStep, *, lost: bool) -> bool:
    """The same; a run that cannot be read any more is ended, or it would be tried for ever."""
    try:
        return _settle(placement, found, lost=lost)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("not settled", extra={"event": "NOT_SETTLED", **log_ids(placement)})
        message = "It was interrupted_step in the middle and cannot be read any more; the worker's log says why."
        return set_outcome(
            placement, ExecutionState.FAILED, code=Code.OUTCOME_UNKNOWN, message=message
        )


def _settle(placement: Placement, found: InterruptedStep, *, lost: bool) -> bool:
    """Decide what becomes of an interrupted step, or of a run interrupted too often; true if that was written."""
    if lost and found.losses + 1 >= MAX_LOSSES:
        # A poison run must not take worker after worker.
        message = f"Its worker was lost {MAX_LOSSES} times in a row at the same step."
        return set_outcome(placement, ExecutionState.FAILED, code=Code.WORKER_LOST, message=message)
    if found.path is None:
        return False
    decided = after_loss(found.plan, found.path, recovering=found.recovering)
    run = load_run(placement.tenant_id, placement.execution_id) if decided else None
    if decided is None or run is None:
        return False
    attempt = Attempt(run, found.path, number=found.attempt, version=found.version)
    concluded = attempt.cut(decided)
    return write_checkpoint(placement, concluded.record, concluded.decided) is not None
