"""The end of a question, in one statement: the run goes on, waits for a retry's time, or ends without a placement."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.models.approval import ApprovalState
from executions.semantics.attempt_record import AttemptRecord
from executions.semantics.decisions import Checkpoint
from executions.states import TERMINAL_STEP, ExecutionState
from executions.transitions.fence import fetch_row

# What is answered once is answered: ticket, run and question are locked in this order and must all still wait. Of an
# answer and the end of its time the database's clock lets one through.
ANSWER = """
WITH ticket AS (
    SELECT execution_id, tenant_id FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND state = 'parked' FOR UPDATE
), locked AS (
    SELECT e.id FROM executions_execution e JOIN ticket ON e.id = ticket.execution_id
    WHERE e.state = 'suspended' AND e.outcome = '' AND e.version = %(version)s::int FOR NO KEY UPDATE OF e
), approval AS (
    UPDATE executions_approval a
    SET state = %(answer)s::text, answered_at = now(), answered_by = %(by)s::text, comment = %(comment)s::text
    FROM locked
    WHERE a.execution_id = locked.id AND a.number = %(number)s::int AND a.state = 'open' AND a.step = %(path)s::text
      AND (a.expires_at <= now()) = (%(answer)s::text = 'expired')
    RETURNING a.execution_id
), step AS (
    UPDATE executions_step s
    SET state = %(state)s::text, output = %(output)s::jsonb, sealed_output = %(sealed_output)s::bytea,
        code = %(code)s::text, message = %(message)s::text, cause = %(cause)s::text,
        recovering = %(recovering)s::bool, retry_at = now() + make_interval(secs => %(retry_s)s::float8),
        finished_at = CASE WHEN %(ended)s::bool THEN now() END
    FROM approval
    WHERE s.execution_id = approval.execution_id AND s.path = %(path)s::text AND s.state = 'suspended'
    RETURNING s.execution_id
), expiry AS (
    DELETE FROM public.placement_due d USING step WHERE d.kind = 'approval' AND d.ref = step.execution_id
), wake AS (
    INSERT INTO public.placement_due (tenant_id, kind, ref, at)
    SELECT ticket.tenant_id, 'wake', ticket.execution_id, now() + make_interval(secs => %(wake_s)s::float8)
    FROM ticket, step WHERE %(run_state)s::text = 'waiting'
    ON CONFLICT (kind, ref) DO UPDATE SET at = excluded.at
), queued AS (
    UPDATE public.placement_ticket t SET state = 'waiting', waiting_since = now()
    FROM step WHERE t.execution_id = step.execution_id AND %(run_state)s::text = 'queued'
), released AS (
    DELETE FROM public.placement_ticket t
    USING step WHERE t.execution_id = step.execution_id AND %(outcome)s::text <> ''
), run AS (
    UPDATE executions_execution e
    SET state = %(run_state)s::text, outcome = %(outcome)s::text, version = e.version + 1, losses = 0, question = '',
        next_step = %(next)s::text, wake_at = now() + make_interval(secs => %(wake_s)s::float8),
        code = %(run_code)s::text, message = %(run_message)s::text, outputs = coalesce(%(outputs)s::jsonb, e.outputs),
        finished_at = CASE WHEN %(outcome)s::text <> '' THEN now() END, last_event = e.last_event + 2
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event
), rest AS (
    UPDATE executions_step s SET state = 'skipped', finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state = 'pending' AND %(outcome)s::text <> ''
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT run.id, run.last_event - 1, now(), 'step.' || %(state)s::text, %(path)s::text,
           jsonb_strip_nulls(jsonb_build_object(
               'attempt', %(attempt)s::int, 'code', nullif(%(code)s::text, ''), 'approval', %(number)s::int,
               'actor', nullif(%(by)s::text, ''), 'retry_s', %(retry_s)s::float8, 'wake_s', %(wake_s)s::float8,
               'recovering', nullif(%(recovering)s::bool, false)))
    FROM run
    UNION ALL
    SELECT run.id, run.last_event, now(), 'execution.' || %(run_state)s::text, '',
           jsonb_build_object('reason', %(answer)s::text)
    FROM run
)
SELECT id FROM run"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalAnswer:
    """What ends a question."""

    execution_id: UUID
    number: int
    state: ApprovalState
    by: str = ""
    comment: str = ""  # as it may be shown


def write_answer(
    answer: ApprovalAnswer, record: AttemptRecord, decided: Checkpoint
) -> ExecutionState | None:
    """Write it; none means that the question is open no more, and nothing was written."""
    run_state = decided.outcome or (
        ExecutionState.WAITING if decided.wake_s else ExecutionState.QUEUED
    )
    parameters: dict[str, Any] = {
        "execution": answer.execution_id,
        "number": answer.number,
        "answer": answer.state.value,
        "by": answer.by,
        "comment": answer.comment,
        "path": record.path,
        "attempt": record.attempt,
        "version": record.version,
        "state": decided.state.value,
        "ended": decided.state in TERMINAL_STEP,
        "output": record.output,
        "sealed_output": record.sealed_output,
        "code": record.code,
        "message": record.message,
        "cause": record.cause,
        "recovering": decided.recovering,
        "retry_s": decided.retry_s,
        "wake_s": decided.wake_s or None,
        "next": decided.next_step,
        "outcome": decided.outcome.value if decided.outcome else "",
        "outputs": record.outputs,
        "run_code": record.run_code,
        "run_message": record.run_message,
        "run_state": run_state.value,
    }
    return run_state if fetch_row(ANSWER, parameters) else None
