"""The resources of an open context: heard of from its runtime, told to the log, revoked at its end.

Timing: background-worker. Model: sync; from whichever thread uses the runtime or closes the context.
Guarantee: every allocation, reuse, disposal and failure is one log line with both ids; of the last second of a
runtime that is killed, reuse and disposal may be missing. Revoking: at-least-once.
Failure: what cannot be revoked now is logged and stays in the ledger, where the sweeper finds it.
"""

import logging
from dataclasses import replace

from executions.semantics.resource_tracker import TrackedResource
from executions.transitions.settlement import Settlement
from executions.worker.links.context import OpenContext
from executions.worker.log_ids import log_ids
from isolane.protocol import Resource
from resources.issuers.base import IssueError

logger = logging.getLogger(__name__)


def hear(context: OpenContext, frame: Resource) -> None:
    """Note what a runtime tells of a handle; ProtocolError if it cannot be."""
    if frame.error:
        frame = replace(frame, error=context.run.memory.masker.mask(frame.error))
    holding = context.holdings.hear(frame)
    failed = frame.event == "failed" or bool(frame.error)
    tell(context, "failed" if failed else frame.event, holding, step=frame.step)


def runtime_is_gone(context: OpenContext) -> None:
    """Every handle that was still open went with it."""
    for holding in context.holdings.killed():
        tell(context, "killed", holding)


def revoke_issued(context: OpenContext) -> None:
    """Take away what was issued to this placement, the last first; none can stop the others."""
    while context.issued:
        issuer, thing = context.issued.pop()
        try:
            issuer.revoke(thing)
        except IssueError as error:
            reason = context.run.memory.masker.mask(str(error))
            tell(context, "failed", context.holdings.revoked(thing.far_id, reason))
        except Exception:
            # Issuers may be of others, and none may stop the rest.
            logger.exception(
                "not revoked", extra={"event": "NOT_REVOKED", **log_ids(context.placement)}
            )
            tell(
                context,
                "failed",
                context.holdings.revoked(thing.far_id, "the worker's log says why"),
            )
        else:
            tell(context, "disposed", context.holdings.revoked(thing.far_id))


def settlement_of(context: OpenContext) -> Settlement | None:
    """What is written with the end of the placement; none of a run without resources."""
    if not context.run.plan.resources:
        return None
    holdings = context.holdings
    return Settlement(holdings=holdings.unwritten(), revoked=holdings.gone())


def tell(context: OpenContext, event: str, holding: TrackedResource, *, step: str = "") -> None:
    """One line of the log, in the words of NORP-006."""
    logger.log(
        logging.WARNING if event == "failed" else logging.INFO,
        "resource %s %s%s",
        holding.name,
        event,
        f": {holding.error}" if holding.error else "",
        extra={
            **context.log_ids,
            "event": f"RESOURCE_{event.upper()}",
            "resource": holding.name,
            "resource_type": holding.type,
            "resource_id": holding.resource_id,
            "step": step or holding.step or None,
        },
    )
