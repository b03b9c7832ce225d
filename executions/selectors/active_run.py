"""What it takes to go on with a run from its checkpoint; read in one statement."""

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from executions.blueprints.plan import Plan, plan_of
from executions.models.sealing import seal, unseal
from executions.semantics.active_run import ActiveRun
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory, Metadata
from resources.placement import Placement
from tenants.statement import Row, fetch_row

LOAD_RUN = """
SELECT v.content, v.content_hash, v.number, e.inputs, e.sealed_inputs, e.variables, e.sealed_variables, e.costs, e.seed,
       e.isolation, e.requested_by, e.request_id, e.replay_of, done.open, done.sealed, q.budget,
       CASE WHEN q.budget <> '{}' THEN (
           SELECT jsonb_object_agg(m.kind, m.amount) FROM executions_monthlycost m
           WHERE m.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date) END
FROM executions_execution e
JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
LEFT JOIN public.tenants_quota q ON q.tenant_id = %(tenant)s::bigint
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(s.path, s.output) FILTER (WHERE s.sealed_output IS NULL) AS open,
           jsonb_object_agg(s.path, encode(s.sealed_output, 'escape')) FILTER (WHERE s.sealed_output IS NOT NULL)
               AS sealed
    FROM executions_step s WHERE s.execution_id = e.id AND s.state = 'succeeded'
) done
WHERE e.id = %(execution)s::uuid"""

# Of a placement that others end: which step is interrupted, and what its fate depends on.
INTERRUPTED = """
SELECT s.path, s.attempt, s.recovering, e.version, e.losses, v.content, v.content_hash
FROM executions_execution e
JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
LEFT JOIN executions_step s ON s.execution_id = e.id AND s.state = 'running' AND s.epoch = %(epoch)s::int
WHERE e.id = %(execution)s::uuid AND e.outcome = ''"""

ORIGINAL = """
SELECT jsonb_object_agg(path, output) FROM executions_step
WHERE execution_id = %(execution)s::uuid AND state = 'succeeded' AND sealed_output IS NULL"""


@dataclass(frozen=True, kw_only=True, slots=True)
class InterruptedStep:
    """What a placement was at when it ended."""

    plan: Plan
    version: int
    losses: int
    path: str | None  # of the step that was running, if one was
    attempt: int
    recovering: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """A run as it is stored."""

    tenant_id: int
    execution_id: UUID
    row: Row
    original: str | None  # the outputs of the run that it repeats, as JSON


def load_run(tenant_id: int, execution_id: UUID) -> ActiveRun | None:
    """Read the plan, the memory and the budgets of a run of the tenant entered; none if it is gone."""
    found = read_run(tenant_id, execution_id)
    return restore_run(found) if found else None


def read_run(tenant_id: int, execution_id: UUID) -> StoredRun | None:
    """Read a run of the tenant entered; none if it is gone."""
    row = fetch_row(LOAD_RUN, {"tenant": tenant_id, "execution": execution_id})
    if row is None:
        return None
    replay_of = row[12]
    original = fetch_row(ORIGINAL, {"execution": replay_of}) if replay_of else None
    return StoredRun(
        tenant_id=tenant_id,
        execution_id=execution_id,
        row=row,
        original=original[0] if original else None,
    )


def restore_run(found: StoredRun) -> ActiveRun:
    """The plan, the memory and the budgets of a run that was read; without a statement."""
    tenant_id, execution_id = found.tenant_id, found.execution_id
    (content, content_hash, number, inputs, sealed_inputs, variables, sealed_variables, costs, seed,
     isolation, requested_by, request_id, replay_of, outputs, sealed, limits, spent) = found.row  # fmt: skip
    planned = plan_of(content_hash, json.loads(content))
    hidden = unseal(execution_id, sealed_variables) if sealed_variables else {}
    opened = {path: unseal(execution_id, token.encode()) for path, token in _object(sealed).items()}
    memory = ExecutionMemory(
        planned,
        metadata=Metadata(
            tenant_id=tenant_id,
            execution_id=execution_id,
            blueprint=planned.name,
            blueprint_version=number,
        ),
        inputs=unseal(execution_id, sealed_inputs) if sealed_inputs else _object(inputs),
        outputs=_object(outputs) | opened,
        variables=_object(variables) | hidden,
        sensitive_variables=frozenset(hidden),
    )
    budget = Budget(
        run_limits=planned.budget,
        run_spent=_amounts(costs),
        tenant_limits=_amounts(limits),
        tenant_spent=_amounts(spent),
    )
    return ActiveRun(
        plan=planned,
        memory=memory,
        budget=budget,
        seed=seed,
        isolation=isolation,
        seal=partial(seal, execution_id),
        requested_by=requested_by,
        request_id=request_id,
        original=_object(found.original) if replay_of else None,
    )


def interrupted_step(placement: Placement) -> InterruptedStep | None:
    """Read what a placement was at; none if its run has an outcome."""
    row = fetch_row(INTERRUPTED, placement.parameters())
    if row is None:
        return None
    path, attempt, recovering, version, losses, content, content_hash = row
    return InterruptedStep(
        plan=plan_of(content_hash, json.loads(content)),
        version=version,
        losses=losses,
        path=path,
        attempt=attempt or 0,
        recovering=bool(recovering),
    )


def _object(text: str | None) -> dict[str, Any]:
    """Django's connections hand JSON over as text."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _amounts(text: str | None) -> dict[str, Decimal]:
    found: dict[str, Decimal] = (
        json.loads(text, parse_float=Decimal, parse_int=Decimal) if text else {}
    )
    return found
