"""Reading runs of the tenant entered."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from executions.blueprint.plan import Plan, plan
from executions.memory import ExecutionMemory
from executions.models import Blueprint, Execution
from executions.states import TERMINAL_STEP, StepState
from orchestrator.core.errors import InvalidInput, NotFound


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumable:
    """What it takes to go on with a run from its checkpoint."""

    plan: Plan
    memory: ExecutionMemory
    seed: int
    next_step: str
    outcome: str
    isolation: str


class StepCounts(TypedDict):
    """What lists show beside a run."""

    steps_done: int
    steps_total: int


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    CountedExecution = WithAnnotations[Execution, StepCounts]


def executions() -> "QuerySet[CountedExecution]":
    """Runs with what lists show, newest first."""
    done = Count("steps", filter=Q(steps__state__in=sorted(TERMINAL_STEP)))
    return (
        Execution.objects.select_related("blueprint_version__blueprint")
        .annotate(steps_total=Count("steps"), steps_done=done)
        .order_by("-created_at", "id")
    )


def execution(public_id: str) -> "CountedExecution":
    """One run by the id that people see."""
    found = executions().filter(pk=parse_id(public_id)).first()
    if found is None:
        raise NotFound(f"There is no execution {public_id}.", field="id")
    return found


def blueprints() -> QuerySet[Blueprint]:
    """Blueprints by name."""
    return Blueprint.objects.order_by("name")


def resumable(execution_id: UUID) -> Resumable | None:
    """Read the plan and the memory of a run, none if it is gone."""
    run = Execution.objects.select_related("blueprint_version").filter(pk=execution_id).first()
    if run is None:
        return None
    outputs: dict[str, Any] = dict(
        run.steps.filter(state=StepState.SUCCEEDED).values_list("path", "output")
    )
    return Resumable(
        plan=plan(run.blueprint_version.content),
        memory=ExecutionMemory(inputs=run.inputs, outputs=outputs),
        seed=run.seed,
        next_step=run.next_step,
        outcome=run.outcome,
        isolation=run.isolation,
    )


def parse_id(public_id: str) -> UUID:
    """From exec_<uuid> to the UUID."""
    try:
        return UUID(public_id.removeprefix("exec_"))
    except ValueError:
        raise InvalidInput(
            f"{public_id!r} is not an execution id; they look like exec_<uuid>.", field="id"
        ) from None
