"""The end of a context: tear down first, write second. A run is terminal only when its context is gone.

Timing: background-worker.
Model: sync.
Guarantee: at-least-once; closing twice does nothing the second time.
Failure: a failed teardown is logged and stops nothing; a failed write is repeated by the worker's loop.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from django.db import Error as DatabaseError

from executions.placement.chain import ChainSpec, publish
from executions.placement.run_scope import run_scope
from executions.selectors.active_run import InterruptedStep, interrupted_step, load_run
from executions.semantics.attempt import OVERDUE, Attempt
from executions.semantics.decisions import after_loss
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import NO_USAGE, PlacementEnd
from executions.transitions.refusal import note_refusal
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.transitions.settlement import UNKNOWN, Settlement
from executions.worker.boot import WorkerBoot
from executions.worker.links.connection_events import write_last_connections
from executions.worker.links.context import Exit, OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.resources.revocation import revoke_credentials, settlement_of
from executions.worker.resources.tracking import track_runtime_end
from isolane.limits import Usage
from isolane.results import Code
from resources.placement import Placement
from resources.runtimes.faults import reported

# For all disposals together: each has a limit of its own, and one that hangs stops no other.
CLOSE_SECONDS = 30
MAX_LOSSES = 5
logger = logging.getLogger(__name__)


class ContextEnd(NamedTuple):
    """The remains of a context, to be written with the end of its placement."""

    settlement: Settlement | None
    usage: Usage


NO_CONTEXT = ContextEnd(settlement=UNKNOWN, usage=NO_USAGE)


def close_context(boot: WorkerBoot, context: OpenContext) -> None:
    """Tear a context down, then write what comes after it, unless the placement is lost."""
    dispose(context)
    # Of a lost context, too, as far as the fence lets it: a worker that stops still holds the placement.
    write_last_connections(context)
    if context.lost:
        return
    try:
        with run_scope(context.placement.tenant_id):
            if context.exit is Exit.RESTART:
                _restart(context)
                return
            state = _write_end(context)
            if state is None:
                note_refusal(context.placement, "close")
    except DatabaseError:
        boot.contexts.put_back(context)
        raise
    logger.info(
        "run closed", extra={"event": "RUN_CLOSED", **log_ids(context.placement), "state": state}
    )
    boot.request_admission()


def _write_end(context: OpenContext) -> ExecutionState | None:
    settlement, usage = end_of(context)
    if context.exit is not Exit.PARKED:
        return close_execution(context.placement, settlement, usage=usage)
    return hand_back(
        context.placement,
        PlacementEnd(reason=EndReason.PARKED),
        settlement=settlement,
        usage=usage,
    )


def _restart(context: OpenContext) -> None:
    """Begin a new placement here, from the checkpoint: the runtime is dead, and the run goes on."""
    placement = context.placement
    settlement, usage = end_of(context)
    epoch = restart(placement, reason=EndReason.RUNTIME_ENDED, settlement=settlement, usage=usage)
    if epoch is None:
        note_refusal(placement, "close")
        return  # cancelled meanwhile, or over: the loop ends it
    again = replace(placement, epoch=epoch)
    publish(ChainSpec(placement=again, plan=context.run.plan, first=context.next_step))


def dispose(context: OpenContext) -> None:
    """End the runtime's part of the context, then revoke what was issued to it. Never raises."""
    tear_down(context)
    with reported("what was issued was not revoked"):  # the sweeper finds it in the ledger
        revoke_credentials(context)


def end_of(context: OpenContext) -> ContextEnd:
    """Return the remains of a context that is disposed of."""
    usage = NO_USAGE
    if context.runtime is not None:
        with reported("what a runtime has used is not known"):
            usage = context.runtime.usage
    return ContextEnd(settlement=settlement_of(context), usage=usage)


def tear_down(context: OpenContext) -> None:
    """End the runtime's part of the context. Never raises: the placement must end, whatever goes wrong here."""
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
    end_context: Callable[[], ContextEnd] = lambda: NO_CONTEXT,
) -> None:
    """End a placement in which no link is active: close it if its run has an outcome, else hand it back.

    `end_context` disposes of its context, if there is one. The outcome is set before, so that no link begins meanwhile.
    """
    settled = False
    with run_scope(placement.tenant_id):
        if cancel:
            message = "Cancelled before its next step."
            set_outcome(placement, ExecutionState.CANCELLED, code=Code.CANCELLED, message=message)
        elif overdue:
            end_overdue(placement)
        elif found := interrupted_step(placement):
            settled = _settle_or_fail(placement, found, lost=ending.lost)
    settlement, usage = end_context()
    with run_scope(placement.tenant_id):
        if close_execution(placement, settlement, ending=ending, usage=usage) is not None:
            return
        # A loss that was settled wrote a checkpoint, and only losses without one between them are counted.
        counted = ending.lost and not settled
        handed = hand_back(placement, ending, counted=counted, settlement=settlement, usage=usage)
        if handed is None:
            # A worker that ends another's placement may come second, which means nothing.
            if not ending.by:
                note_refusal(placement, "close")
            return
    logger.warning(
        "handed back: %s", ending.reason, extra={"event": "HANDED_BACK", **log_ids(placement)}
    )


def end_overdue(placement: Placement) -> bool:
    """Set the outcome of a run that has used up its time; false if it has one or the fence refused."""
    return set_outcome(placement, ExecutionState.TIMED_OUT, code=Code.TIMEOUT, message=OVERDUE)


def _settle_or_fail(placement: Placement, found: InterruptedStep, *, lost: bool) -> bool:
    """Settle an interrupted step; a run that cannot be read any more is ended, or it would be tried for ever."""
    try:
        return _settle(placement, found, lost=lost)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("not settled", extra={"event": "NOT_SETTLED", **log_ids(placement)})
        message = "It was interrupted in the middle and cannot be read any more; the worker's log says why."
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
    concluded = attempt.interrupted(decided)
    return write_checkpoint(placement, concluded.record, concluded.decided) is not None
