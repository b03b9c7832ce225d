"""The end of a question, in one statement: the run goes on, waits for a retry's time, or ends without a placement."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.models.approval import ApprovalState
from executions.semantics.attempt_record import AttemptRecord
from executions.semantics.decisions import StepDecision
from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    TERMINAL_STEP,
    TICKET_TRANSITIONS,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.guards import may_become
from executions.transitions.rows import RunRow
from tenants.statement import Statement, compose

_IS_PARKED = may_become(TICKET_TRANSITIONS, TicketState.WAITING, only={TicketState.PARKED})
_MAY_GO_ON = may_become(
    EXECUTION_TRANSITIONS,
    *TERMINAL_EXECUTION,
    ExecutionState.QUEUED,
    ExecutionState.WAITING,
    only={ExecutionState.SUSPENDED},
)
_MAY_BE_ANSWERED = may_become(
    STEP_TRANSITIONS,
    StepState.SUCCEEDED,
    StepState.FAILED,
    StepState.CANCELLED,
    StepState.RETRYING,
    only={StepState.SUSPENDED},
)
_HAS_NOT_RUN = may_become(STEP_TRANSITIONS, StepState.SKIPPED, only={StepState.PENDING})

_LOCKED_TICKET = f"""ticket AS (
    SELECT execution_id, tenant_id FROM public.placement_ticket
    WHERE execution_id = %(execution)s::uuid AND state {_IS_PARKED} FOR UPDATE
)"""  # noqa: S608 - all constants

_LOCKED_RUN = f"""locked AS (
    SELECT e.id FROM executions_execution e JOIN ticket ON e.id = ticket.execution_id
    WHERE e.state {_MAY_GO_ON} AND e.outcome = '' AND e.version = %(version)s::int FOR NO KEY UPDATE OF e
)"""  # noqa: S608 - all constants

# Of an answer and the end of its time the database's clock lets one through.
_ENDED_QUESTION = f"""approval AS (
    UPDATE executions_approval a
    SET state = %(answer)s::text, answered_at = now(), answered_by = %(by)s::text, comment = %(comment)s::text
    FROM locked
    WHERE a.execution_id = locked.id AND a.number = %(number)s::int AND a.state = '{ApprovalState.OPEN}'
      AND a.step = %(path)s::text AND (a.expires_at <= now()) = (%(answer)s::text = '{ApprovalState.EXPIRED}')
    RETURNING a.execution_id
)"""  # noqa: S608 - all constants

_ANSWERED_STEP = f"""step AS (
    UPDATE executions_step s
    SET state = %(state)s::text, output = %(output)s::jsonb, sealed_output = %(sealed_output)s::bytea,
        code = %(code)s::text, message = %(message)s::text, cause = %(cause)s::text,
        recovering = %(recovering)s::bool, retry_at = now() + make_interval(secs => %(retry_s)s::float8),
        finished_at = CASE WHEN %(ended)s::bool THEN now() END
    FROM approval
    WHERE s.execution_id = approval.execution_id AND s.path = %(path)s::text AND s.state {_MAY_BE_ANSWERED}
    RETURNING s.execution_id
)"""  # noqa: S608 - all constants

_DUE = f"""expiry AS (
    DELETE FROM public.placement_due d USING step WHERE d.kind = 'approval' AND d.ref = step.execution_id
), wake AS (
    INSERT INTO public.placement_due (tenant_id, kind, ref, at)
    SELECT ticket.tenant_id, 'wake', ticket.execution_id, now() + make_interval(secs => %(wake_s)s::float8)
    FROM ticket, step WHERE %(run_state)s::text = '{ExecutionState.WAITING}'
    ON CONFLICT (kind, ref) DO UPDATE SET at = excluded.at
)"""  # noqa: S608 - all constants

_TICKET = f"""queued AS (
    UPDATE public.placement_ticket t SET state = '{TicketState.WAITING}', waiting_since = now()
    FROM step WHERE t.execution_id = step.execution_id AND %(run_state)s::text = '{ExecutionState.QUEUED}'
), released AS (
    DELETE FROM public.placement_ticket t
    USING step WHERE t.execution_id = step.execution_id AND %(outcome)s::text <> ''
)"""  # noqa: S608 - all constants

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'step.' || %(state)s::text, %(path)s::text, jsonb_strip_nulls(jsonb_build_object(
               'attempt', %(attempt)s::int, 'code', nullif(%(code)s::text, ''), 'approval', %(number)s::int,
               'actor', nullif(%(by)s::text, ''), 'retry_s', %(retry_s)s::float8, 'wake_s', %(wake_s)s::float8,
               'recovering', nullif(%(recovering)s::bool, false)))
    UNION ALL
    SELECT 2, 'execution.' || %(run_state)s::text, '', jsonb_build_object('reason', %(answer)s::text)
)"""

_ADVANCED_RUN = f"""run AS (
    UPDATE executions_execution e
    SET state = %(run_state)s::text, outcome = %(outcome)s::text, version = e.version + 1, losses = 0, question = '',
        next_step = %(next)s::text, wake_at = now() + make_interval(secs => %(wake_s)s::float8),
        code = %(run_code)s::text, message = %(run_message)s::text, outputs = coalesce(%(outputs)s::jsonb, e.outputs),
        finished_at = CASE WHEN %(outcome)s::text <> '' THEN now() END, last_event = e.last_event + {EVENT_COUNT}
    FROM step WHERE e.id = step.execution_id
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

_SKIPPED_STEPS = f"""rest AS (
    UPDATE executions_step s SET state = '{StepState.SKIPPED}', finished_at = now()
    FROM run WHERE s.execution_id = run.id AND s.state {_HAS_NOT_RUN} AND %(outcome)s::text <> ''
)"""  # noqa: S608 - all constants

# Locks:   the ticket, the run, the question, the step, in this order.
# Guard:   all of them still wait: ticket parked; run suspended, without outcome, of the version that was read; question
#          open, and its time not over, or over if that is what ends it; step suspended.
# Writes:  question, step, run; ticket waiting, or deleted with the run's end; due rows; at the end, steps skipped.
# Events:  step.<state>; execution.<state>.
# Returns: the run; no row if the question is open no more.
ANSWER = Statement(
    "answer",
    compose(
        _LOCKED_TICKET,
        _LOCKED_RUN,
        _ENDED_QUESTION,
        _ANSWERED_STEP,
        _DUE,
        _TICKET,
        _HAPPENED,
        _ADVANCED_RUN,
        _SKIPPED_STEPS,
        EVENTS,
        then="SELECT id FROM run",
    ),
    parameters=(
        "execution", "number", "answer", "by", "comment", "path", "attempt", "version", "state", "ended", "output",
        "sealed_output", "code", "message", "cause", "recovering", "retry_s", "wake_s", "next", "outcome", "outputs",
        "run_code", "run_message", "run_state",
    ),
    row=RunRow,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalAnswer:
    """The end of a question: an answer, or the end of its time."""

    execution_id: UUID
    number: int
    state: ApprovalState
    by: str = ""
    comment: str = ""  # as it may be shown


def write_answer(
    answer: ApprovalAnswer, record: AttemptRecord, decided: StepDecision
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
    return run_state if ANSWER.fetch(parameters) else None
