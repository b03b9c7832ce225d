"""Runs on their way, brought there by transitions alone."""

from datetime import timedelta
from typing import Any

from executions.blueprints.plan import plan
from executions.semantics.attempt_record import AttemptRecord
from executions.semantics.decisions import StepDecision, after_step
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, StepState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.set_outcome import set_outcome
from isolane.results import Code, StepResult
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import document, due_of, record

HOUR = 3600.0


def attempt(path: str = "one", number: int = 1, **fields: Any) -> AttemptRecord:
    """The record of an attempt, of the first version of its run by default."""
    return AttemptRecord(path=path, attempt=number, **{"version": 0, **fields})


def end_step(tenant: TenantRef, placement: Placement, decided: StepDecision, **fields: Any) -> None:
    """The checkpoint of the claimed step."""
    with tenant_scope(tenant):
        assert write_checkpoint(placement, attempt(**fields), decided)


def retry(tenant: TenantRef, placement: Placement, seconds: float = 5.0) -> None:
    """The first step failed and is tried again."""
    decided = StepDecision(state=StepState.RETRYING, next_step="one", retry_s=seconds)
    end_step(tenant, placement, decided, code="TRANSIENT_ERROR")


def ask(tenant: TenantRef, placement: Placement) -> None:
    """The first step asks a person."""
    decided = StepDecision(state=StepState.SUSPENDED, next_step="one", pause_s=HOUR)
    end_step(tenant, placement, decided, question="Pay?")


def pause(tenant: TenantRef, placement: Placement, next_step: str = "two") -> None:
    """The first step has paused the run."""
    decided = StepDecision(state=StepState.SUCCEEDED, next_step=next_step, pause_s=HOUR)
    end_step(tenant, placement, decided)


def park(tenant: TenantRef, placement: Placement) -> None:
    """The slot of a run that waits is given away."""
    with tenant_scope(tenant):
        assert hand_back(placement, PlacementEnd(reason=EndReason.PARKED))


def make_due(placement: Placement) -> None:
    """The time that a run waits for has come."""
    due = due_of(placement.execution_id)
    assert due is not None
    due.at -= timedelta(days=1)
    with platform_scope():
        due.save()


def fail(tenant: TenantRef, placement: Placement, code: Code) -> None:
    """Write the checkpoint of a first step that failed."""
    result = StepResult.failed(step="one", attempt=1, code=code, message="")
    with tenant_scope(tenant):
        assert write_checkpoint(
            placement, record(result), after_step(plan(document()), result, seed=7)
        )


def close(tenant: TenantRef, placement: Placement) -> ExecutionState | None:
    """Close, in the tenant's scope."""
    with tenant_scope(tenant):
        return close_execution(placement)


def give_back(
    tenant: TenantRef, placement: Placement, *, lost: bool = True
) -> ExecutionState | None:
    """Hand back, in the tenant's scope."""
    with tenant_scope(tenant):
        return hand_back(placement, PlacementEnd(reason=EndReason.WORKER_LOST, lost=lost))


def time_out(tenant: TenantRef, placement: Placement) -> bool:
    """The run has used up its time."""
    with tenant_scope(tenant):
        return set_outcome(placement, ExecutionState.TIMED_OUT, code=Code.TIMEOUT, message="")
