"""The end of a placement's resources: its credentials are revoked, and the outcome is settled with the ledger.

Timing: background-worker, while a context closes.
Model: sync; each remote server has a few seconds to answer.
Guarantee: at-least-once.
Failure: a credential that cannot be revoked is logged and left to the sweeper, in the ledger.
"""

import logging

from executions.semantics.record_error import RecordErrorCode
from executions.transitions.settlement import Settlement
from executions.worker.links.context import OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.resources.tracking import log_resource
from resources.issuers.base import IssueError

logger = logging.getLogger(__name__)


def revoke_credentials(context: OpenContext) -> None:
    """Revoke the credentials of this placement, the last first; a failure does not stop the others."""
    while context.credentials:
        issuer, credential = context.credentials.pop()
        try:
            issuer.revoke(credential)
        except IssueError as error:
            reason = context.run.memory.masker.mask(str(error))
            kept = context.tracker.keep_unrevoked(credential.remote_id, reason)
            log_resource(context, "failed", kept)
        except Exception:
            # An issuer may come from a plugin and raise anything.
            logger.exception(
                "not revoked", extra={"event": "NOT_REVOKED", **log_ids(context.placement)}
            )
            kept = context.tracker.keep_unrevoked(
                credential.remote_id, code=RecordErrorCode.SEE_WORKER_LOG
            )
            log_resource(context, "failed", kept)
        else:
            log_resource(context, "disposed", context.tracker.end_revoked(credential.remote_id))


def settlement_of(context: OpenContext) -> Settlement | None:
    """Return what is written with the end of the placement; None for a run without resources."""
    if not context.run.plan.resources:
        return None
    tracker = context.tracker
    return Settlement(tracked=tracker.unwritten(), revoked=tracker.ended_credentials())
