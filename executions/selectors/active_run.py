"""A run as its next step needs it, read from its checkpoint in one statement."""

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from executions.blueprints.plan import Plan, plan_of
from executions.models.sealing import seal, unseal
from executions.semantics.active_run import ActiveRun
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.semantics.run_limits import effective_limits
from executions.states import StepState
from isolane.limits import RunLimits
from resources.placement import Placement
from tenants.statement import Statement


class RunToLoadRow(NamedTuple):
    """A run as it is stored; JSON is text, as Django's connections return it."""

    content: str
    content_hash: str
    number: int
    inputs: str
    sealed_inputs: bytes | None
    variables: str
    sealed_variables: bytes | None
    costs: str
    seed: int
    isolation: str
    requested_by: str
    request_id: str
    replay_of: UUID | None
    outputs: str | None
    sealed_outputs: str | None
    budget: str | None
    spent: str | None
    cpu: float | None  # this and the next are the quota's limits of a run
    ram_mb: int | None
    processes: int | None
    disk_mb: int | None
    open_files: int | None
    output_kb: int | None
    connections: int | None
    network_mb: int | None
    idle_seconds: int | None


class InterruptedRow(NamedTuple):
    """A run, and the step that was running."""

    path: str | None
    attempt: int | None
    recovering: bool | None
    version: int
    losses: int
    content: str
    content_hash: str


class OutputsRow(NamedTuple):
    """Outputs of steps by their paths, as JSON."""

    outputs: str | None


# Locks:   nothing.
# Guard:   none.
# Writes:  nothing.
# Events:  none.
# Returns: a run with its blueprint, the outputs of its steps, budgets and limits; no row if it is gone.
LOAD_RUN = Statement(
    "load_run",
    f"""
SELECT v.content, v.content_hash, v.number, e.inputs, e.sealed_inputs, e.variables, e.sealed_variables, e.costs, e.seed,
       e.isolation, e.requested_by, e.request_id, e.replay_of, done.outputs, done.sealed_outputs, q.budget,
       CASE WHEN q.budget <> jsonb_build_object() THEN (
           SELECT jsonb_object_agg(m.kind, m.amount) FROM executions_monthlycost m
           WHERE m.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date) END AS spent,
       q.cpu, q.ram_mb, q.processes, q.disk_mb, q.open_files, q.output_kb,
       q.connections, q.network_mb, q.idle_seconds
FROM executions_execution e
JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
LEFT JOIN public.tenants_quota q ON q.tenant_id = %(tenant)s::bigint
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(s.path, s.output) FILTER (WHERE s.sealed_output IS NULL) AS outputs,
           jsonb_object_agg(s.path, encode(s.sealed_output, 'escape')) FILTER (WHERE s.sealed_output IS NOT NULL)
               AS sealed_outputs
    FROM executions_step s WHERE s.execution_id = e.id AND s.state = '{StepState.SUCCEEDED}'
) done
WHERE e.id = %(execution)s::uuid""",  # noqa: S608 - a constant
    parameters=("tenant", "execution"),
    row=RunToLoadRow,
)

# Locks:   nothing.
# Guard:   run without outcome.
# Writes:  nothing.
# Events:  none.
# Returns: the interrupted step of a placement that another process ends, with all that decides what follows.
INTERRUPTED = Statement(
    "interrupted_step",
    f"""
SELECT s.path, s.attempt, s.recovering, e.version, e.losses, v.content, v.content_hash
FROM executions_execution e
JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
LEFT JOIN executions_step s
       ON s.execution_id = e.id AND s.state = '{StepState.RUNNING}' AND s.epoch = %(epoch)s::int
WHERE e.id = %(execution)s::uuid AND e.outcome = ''""",  # noqa: S608 - a constant
    parameters=("execution", "epoch"),
    row=InterruptedRow,
)

# Locks:   nothing.
# Guard:   none.
# Writes:  nothing.
# Events:  none.
# Returns: the outputs of a run that another one replays, except sealed ones.
ORIGINAL = Statement(
    "original_outputs",
    f"""
SELECT jsonb_object_agg(path, output) AS outputs FROM executions_step
WHERE execution_id = %(execution)s::uuid AND state = '{StepState.SUCCEEDED}' AND sealed_output IS NULL""",  # noqa: S608 - a constant
    parameters=("execution",),
    row=OutputsRow,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class InterruptedStep:
    """The step that was running when its placement ended, if one was."""

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
    row: RunToLoadRow
    original: str | None  # the outputs of the run that it replays, as JSON


def load_run(tenant_id: int, execution_id: UUID) -> ActiveRun | None:
    """Read the plan, memory, budgets and limits of a run of the tenant entered; None if it is gone."""
    found = read_run(tenant_id, execution_id)
    return restore_run(found) if found else None


def read_run(tenant_id: int, execution_id: UUID) -> StoredRun | None:
    """Read a run of the tenant entered; None if it is gone."""
    row = LOAD_RUN.fetch({"tenant": tenant_id, "execution": execution_id})
    if row is None:
        return None
    original = ORIGINAL.fetch({"execution": row.replay_of}) if row.replay_of else None
    return StoredRun(
        tenant_id=tenant_id,
        execution_id=execution_id,
        row=row,
        original=original.outputs if original else None,
    )


def restore_run(found: StoredRun) -> ActiveRun:
    """Return the plan, memory, budgets and limits of a run that was read; sends no statement."""
    execution_id, row = found.execution_id, found.row
    planned = plan_of(row.content_hash, json.loads(row.content))
    hidden = unseal(execution_id, row.sealed_variables) if row.sealed_variables else {}
    sealed = _object(row.sealed_outputs)
    opened = {path: unseal(execution_id, token.encode()) for path, token in sealed.items()}
    memory = ExecutionMemory(
        planned,
        metadata=Metadata(
            tenant_id=found.tenant_id,
            execution_id=execution_id,
            blueprint=planned.name,
            blueprint_version=row.number,
        ),
        inputs=unseal(execution_id, row.sealed_inputs)
        if row.sealed_inputs
        else _object(row.inputs),
        outputs=_object(row.outputs) | opened,
        variables=_object(row.variables) | hidden,
        sensitive_variables=frozenset(hidden),
    )
    budget = Budget(
        run_limits=planned.budget,
        run_spent=_amounts(row.costs),
        tenant_limits=_amounts(row.budget),
        tenant_spent=_amounts(row.spent),
    )
    return ActiveRun(
        plan=planned,
        memory=memory,
        budget=budget,
        seed=row.seed,
        isolation=row.isolation,
        limits=effective_limits(
            default=settings.RUN_LIMITS, quota=_quota(row), blueprint=planned.limits
        ),
        seal=partial(seal, execution_id),
        requested_by=row.requested_by,
        request_id=row.request_id,
        original=_object(found.original) if row.replay_of else None,
    )


def interrupted_step(placement: Placement) -> InterruptedStep | None:
    """Read the step at which a placement ends; None if its run has an outcome."""
    row = INTERRUPTED.fetch(placement.parameters())
    if row is None:
        return None
    return InterruptedStep(
        plan=plan_of(row.content_hash, json.loads(row.content)),
        version=row.version,
        losses=row.losses,
        path=row.path,
        attempt=row.attempt or 0,
        recovering=bool(row.recovering),
    )


def _quota(row: RunToLoadRow) -> RunLimits:
    return RunLimits(
        cpu=row.cpu,
        ram_mb=row.ram_mb,
        processes=row.processes,
        disk_mb=row.disk_mb,
        open_files=row.open_files,
        output_kb=row.output_kb,
        connections=row.connections,
        network_mb=row.network_mb,
        idle_seconds=row.idle_seconds,
    )


def _object(text: str | None) -> dict[str, Any]:
    """Parse an object; Django's connections return JSON as text."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _amounts(text: str | None) -> dict[str, Decimal]:
    found: dict[str, Decimal] = (
        json.loads(text, parse_float=Decimal, parse_int=Decimal) if text else {}
    )
    return found
