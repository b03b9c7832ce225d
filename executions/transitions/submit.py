"""Submitting: the run, its steps, its first event and its ticket, which is the outbox; one statement."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.blueprints.plan import Plan
from executions.states import ExecutionState, StepState, TicketState
from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.rows import RunRow
from tenants.statement import Statement, compose

_HAPPENED = f"""happened(ordinal, kind, step, data) AS (
    SELECT 1, 'execution.{ExecutionState.QUEUED}', '', jsonb_build_object()
)"""

_QUEUED_RUN = f"""run AS (
    INSERT INTO executions_execution (
        id, blueprint_version_id, state, outcome, code, message, inputs, sealed_inputs, labels, seed, express,
        isolation, isolation_reason, catalogue, version, next_step, last_event, losses, requested_by, request_id,
        idempotency_key, key_blueprint, request_hash, replay_of, worker, created_at)
    VALUES (
        %(execution)s::uuid, %(version)s::bigint, '{ExecutionState.QUEUED}', '', '', '', %(inputs)s::jsonb,
        %(sealed_inputs)s::bytea, %(labels)s::jsonb, %(seed)s::bigint, %(express)s::bool, %(isolation)s::text,
        %(isolation_reason)s::text, %(catalogue)s::text, 0, %(first)s::text, {EVENT_COUNT}, 0,
        %(requested_by)s::text, %(request_id)s::text, %(idempotency_key)s::text, %(key_blueprint)s::bigint,
        %(request_hash)s::text, %(replay_of)s::uuid, '', now())
    -- The key is taken; or the first try over a lost connection was written.
    ON CONFLICT DO NOTHING
    RETURNING id, last_event
)"""  # noqa: S608 - all constants

_PENDING_STEPS = f"""steps AS (
    INSERT INTO executions_step (
        execution_id, position, path, uses, state, attempt, epoch, code, message, cause, recovering)
    SELECT run.id, step.number - 1, step.path, step.uses, '{StepState.PENDING}', 0, 0, '', '', '', false
    FROM run, unnest(%(paths)s::text[], %(uses)s::text[]) WITH ORDINALITY AS step(path, uses, number)
)"""  # noqa: S608 - all constants

_WAITING_TICKET = f"""ticket AS (
    INSERT INTO public.placement_ticket (
        execution_id, tenant_id, state, epoch, isolation, catalogue_id, cancel_requested, waiting_since, time_left)
    SELECT id, %(tenant)s::bigint, '{TicketState.WAITING}', 1, %(isolation)s::text, %(catalogue)s::text, false, now(),
           %(time_left)s::float8
    FROM run
)"""  # noqa: S608 - all constants

# Locks:   nothing that is there.
# Guard:   neither the run nor its idempotency key is there.
# Writes:  run, steps, ticket.
# Events:  execution.queued.
# Returns: the run; no row if it, or its key, is there already.
SUBMIT = Statement(
    "submit",
    compose(
        _HAPPENED,
        _QUEUED_RUN,
        _PENDING_STEPS,
        EVENTS,
        _WAITING_TICKET,
        then="SELECT id FROM run",
    ),
    parameters=(
        "execution", "tenant", "version", "inputs", "sealed_inputs", "labels", "seed", "express", "isolation",
        "isolation_reason", "catalogue", "first", "requested_by", "request_id", "idempotency_key", "key_blueprint",
        "request_hash", "replay_of", "paths", "uses", "time_left",
    ),
    row=RunRow,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """The values of a new run."""

    execution_id: UUID
    tenant_id: int
    version_id: int
    plan: Plan
    inputs: str  # JSON, what is sensitive masked
    sealed_inputs: bytes | None
    labels: str
    seed: int
    isolation: str
    isolation_reason: str
    catalogue: str
    requested_by: str
    request_id: str
    idempotency_key: str
    key_blueprint: int  # zero without a key
    request_hash: str
    replay_of: UUID | None


def write_submission(submission: Submission) -> bool:
    """Write it; false if a run with its idempotency key, or this very run, is there already."""
    plan = submission.plan
    parameters: dict[str, Any] = {
        "execution": submission.execution_id,
        "tenant": submission.tenant_id,
        "version": submission.version_id,
        "inputs": submission.inputs,
        "sealed_inputs": submission.sealed_inputs,
        "labels": submission.labels,
        "seed": submission.seed,
        "express": plan.express,
        "isolation": submission.isolation,
        "isolation_reason": submission.isolation_reason,
        "catalogue": submission.catalogue,
        "first": plan.steps[0].path,
        "requested_by": submission.requested_by,
        "request_id": submission.request_id,
        "idempotency_key": submission.idempotency_key,
        "key_blueprint": submission.key_blueprint,
        "request_hash": submission.request_hash,
        "replay_of": submission.replay_of,
        "paths": [step.path for step in plan.steps],
        "uses": [step.uses for step in plan.steps],
        "time_left": plan.timeout_s,
    }
    return SUBMIT.fetch(parameters) is not None
