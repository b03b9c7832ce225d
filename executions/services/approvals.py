"""Answer the questions of runs, and expire unanswered ones. Services write tickets and never publish.

Timing: request-time, and background-worker for questions that expire.
Model: sync.
Guarantee: exactly-once; one statement lets one answer through; the same answer again changes nothing.
Failure: bubble, as an IsolaneError.
"""

import json
import logging
from uuid import UUID

from executions.models import Approval, ApprovalState, Step
from executions.placement.models import Due, DueKind, Ticket
from executions.selectors.active_run import StoredRun, read_run, restore_run
from executions.selectors.approvals import approval
from executions.selectors.executions import Reach, find_execution, no_execution, parse_id
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt import Attempt, AttemptOutcome, Failure
from executions.semantics.masking import MASK
from executions.submission.bounded_work import bounded_work
from executions.transitions.answer import ApprovalAnswer, write_answer
from foundation.errors import Conflict, InvalidInput
from isolane.protocol import ProtocolError, dump
from tenants.scope import TenantRef, platform_scope, tenant_scope

MAX_COMMENT = 2_000  # characters
logger = logging.getLogger(__name__)


class AlreadyAnswered(Conflict):
    """The question has another answer already, or has expired."""

    code = "already_answered"


def answer(
    tenant: TenantRef, public_id: str, number: int, reply: ApprovalReply, *, reach: Reach = None
) -> Approval:
    """Answer a question of one of the tenant's own runs; the run goes on when a slot is free, or ends."""
    _check(reply)
    refuse_other_tenants(tenant, public_id, by=reply.by, reach=reach)
    with tenant_scope(tenant):
        run = find_execution(public_id, reach)
        asked = approval(run, number)
        if asked.state == ApprovalState.OPEN:
            _settle(tenant.id, asked, reply)
            asked.refresh_from_db()
    if (asked.state, asked.answered_by) != (_state(reply), reply.by):
        raise AlreadyAnswered(_ended(asked), field="number")
    return asked


def expire(tenant_id: int, execution_id: UUID) -> bool:
    """End the open question of a run of the tenant entered, if its time is over."""
    asked = Approval.objects.filter(execution_id=execution_id, state=ApprovalState.OPEN).first()
    if asked is None:
        Due.objects.filter(kind=DueKind.APPROVAL, ref=execution_id).delete()
        return False
    return _settle(tenant_id, asked, None)


def refuse_other_tenants(
    tenant: TenantRef, public_id: str, *, by: str, reach: Reach = None
) -> None:
    """Refuse an answer from another tenant than the run's, before the run itself is looked at."""
    execution_id = parse_id(public_id)
    with platform_scope():
        recorded = Ticket.objects.filter(pk=execution_id).values_list("tenant_id", flat=True)
        owner = recorded.first()
    if owner is not None and owner != tenant.id:
        logger.warning(
            "answer to another tenant's run refused",
            extra={
                "event": "CROSS_TENANT_ANSWER",
                "execution_id": str(execution_id),
                "tenant_id": tenant.schema,
                "actor": by,
            },
        )
        with tenant_scope(tenant):
            # As for a run that does not exist: response times must not tell the two apart.
            find_execution(public_id, reach)
        raise no_execution(public_id)


def _settle(tenant_id: int, asked: Approval, reply: ApprovalReply | None) -> bool:
    """Write the outcome of an answer, or of none; return False if the question was no longer open."""
    steps = Step.objects.select_related("execution").only(
        "attempt", "recovering", "code", "message", "execution__version"
    )
    step = steps.get(execution_id=asked.execution_id, path=asked.step)
    run = read_run(tenant_id, asked.execution_id)
    if run is None:
        return False
    with bounded_work():
        concluded = _concluded(run, asked, step, reply)
    ended = ApprovalAnswer(
        execution_id=asked.execution_id,
        number=asked.number,
        state=_state(reply) if reply else ApprovalState.EXPIRED,
        by=reply.by if reply else "",
        comment=_shown_comment(concluded, reply) if reply else "",
    )
    return write_answer(ended, concluded.record, concluded.decided) is not None


def _concluded(
    run: StoredRun, asked: Approval, step: Step, reply: ApprovalReply | None
) -> AttemptOutcome:
    attempt = Attempt(
        restore_run(run),
        asked.step,
        number=step.attempt,
        version=step.execution.version,
        recovers_from=Failure(code=step.code, message=step.message) if step.recovering else None,
    )
    return attempt.answered(reply, f"Nobody answered by {asked.expires_at:%Y-%m-%d %H:%M:%S} UTC.")


def _shown_comment(concluded: AttemptOutcome, reply: ApprovalReply) -> str:
    """Return the comment as the step's output shows it; masked if the output does not keep it."""
    if not reply.comment:
        return ""
    shown = json.loads(concluded.record.output or "null")
    comment = shown.get("comment") if isinstance(shown, dict) else None
    return comment if isinstance(comment, str) else MASK


def _check(reply: ApprovalReply) -> None:
    try:
        dump(reply.comment)  # refuses values that cannot be stored
    except ProtocolError as error:
        raise InvalidInput(f"comment: {error}.", field="comment") from None
    if len(reply.comment) > MAX_COMMENT:
        raise InvalidInput(
            f"comment has {len(reply.comment)} characters; use at most {MAX_COMMENT}.",
            field="comment",
        )


def _state(reply: ApprovalReply) -> ApprovalState:
    return ApprovalState.APPROVED if reply.approved else ApprovalState.REJECTED


def _ended(asked: Approval) -> str:
    match asked.state:
        case ApprovalState.OPEN:
            return "Its time to be answered is over."
        case ApprovalState.EXPIRED:
            return "It has expired."
        case ApprovalState.WITHDRAWN:
            return "Its run has ended."
        case _:
            return f"It was {asked.state} by {asked.answered_by}."
