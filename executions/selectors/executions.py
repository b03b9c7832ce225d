"""Reading blueprints and runs of the tenant entered; `reach` names the blueprints whose things are seen, None all."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum, prefetch_related_objects

from executions.models import (
    Approval,
    Blueprint,
    BlueprintVersion,
    CostRecord,
    Execution,
    ExecutionEvent,
    Step,
    StepLog,
)
from executions.states import TERMINAL_STEP
from foundation.errors import InvalidInput, NotFound
from tenants.names import BLUEPRINT_NAME

Reach = frozenset[str] | None
MAX_VERSIONS = 100  # of one blueprint that are listed with it, the newest
# They may be large, and no list shows them; what is sealed nobody is shown at all.
_LARGE = ("inputs", "outputs", "variables")
_SEALED = ("sealed_inputs", "sealed_variables")


class StepCounts(TypedDict):
    """What lists show beside a run."""

    steps_done: int
    steps_total: int


class VersionFacts(TypedDict):
    """What lists show beside a blueprint."""

    newest: int
    versions_total: int
    published_at: object


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    CountedExecution = WithAnnotations[Execution, StepCounts]
    ListedBlueprint = WithAnnotations[Blueprint, VersionFacts]


# --- runs
def executions(reach: Reach = None) -> "QuerySet[CountedExecution]":
    """Runs with what lists show, newest first."""
    return _counted(reach).defer(*_LARGE, *_SEALED)


def execution(public_id: str, reach: Reach = None) -> "CountedExecution":
    """One run by the id that people see, with its steps, all as they were at the same moment."""
    with snapshot():
        found = _counted(reach).defer(*_SEALED).filter(pk=parse_id(public_id)).first()
        if found is None:
            raise no_execution(public_id)
        prefetch_related_objects([found], "steps")
    return found


def find_execution(public_id: str, reach: Reach = None) -> Execution:
    """The same without its steps and values: for what is only asked about its state, or done to it."""
    runs = Execution.objects.select_related("blueprint_version__blueprint")
    runs = _reached(runs, reach).defer(*_LARGE, *_SEALED, "blueprint_version__content")
    found = runs.filter(pk=parse_id(public_id)).first()
    if found is None:
        raise no_execution(public_id)
    return found


def labelled(runs: "QuerySet[CountedExecution]", label: str) -> "QuerySet[CountedExecution]":
    """Those of the runs that carry a label, written as key:value."""
    key, separator, value = label.partition(":")
    if not separator or not key:
        raise InvalidInput(
            f"label is {label[:200]!r}; write key:value, such as team:billing.", field="label"
        )
    # What the first condition excludes is not in the index.
    return runs.exclude(labels={}).filter(labels__contains={key: value})


def parse_id(public_id: str) -> UUID:
    """From exec_<uuid> to the UUID."""
    try:
        return UUID(public_id.removeprefix("exec_"))
    except ValueError:
        raise InvalidInput(
            f"{public_id!r} is not an execution id; they look like exec_<uuid>.", field="id"
        ) from None


@contextmanager
def snapshot() -> Iterator[None]:
    """What is read inside is of one moment. It is the outermost transaction, and what it begins with is this."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


# --- what happened in a run
def events(run: Execution, *, after: int = 0) -> QuerySet[ExecutionEvent]:
    """What happened since the event with this number."""
    return ExecutionEvent.objects.filter(execution_id=run.pk, sequence__gt=after).order_by(
        "sequence"
    )


def logs(run: Execution, *, after: int = 0, step: str = "") -> QuerySet[StepLog]:
    """What the run's steps, or one of them, said since the line with this number."""
    lines = StepLog.objects.filter(execution_id=run.pk, number__gt=after).order_by("number")
    return lines.filter(step=step) if step else lines


def costs(run: Execution, *, after: int = 0) -> QuerySet[CostRecord]:
    """What each attempt cost, since the record with this id."""
    return CostRecord.objects.filter(execution_id=run.pk, id__gt=after).order_by("id")


def cost_totals(run: Execution) -> dict[str, Decimal]:
    """What all attempts cost together, by kind; exact."""
    summed = CostRecord.objects.filter(execution_id=run.pk).values("kind").order_by("kind")
    return dict(summed.annotate(total=Sum("amount")).values_list("kind", "total"))


# --- what people are asked
def approvals(reach: Reach = None) -> QuerySet[Approval]:
    """Questions of all runs, newest first."""
    found = Approval.objects.select_related("execution__blueprint_version__blueprint").only(
        *(field.name for field in Approval._meta.fields),
        "execution__blueprint_version__blueprint__name",
    )
    if reach is not None:
        found = found.filter(execution__blueprint_version__blueprint__name__in=reach)
    return found.order_by("-asked_at", "id")


def approval(run: Execution, number: int) -> Approval:
    """One question of a run."""
    found = approvals().filter(execution_id=run.pk, number=number).first()
    if found is None:
        raise NotFound(f"{run.public_id} has no approval {number}.", field="number")
    return found


def last_step(run: Execution) -> Step:
    """The step that comes last in the blueprint."""
    return Step.objects.filter(execution_id=run.pk).order_by("-position")[0]


# --- blueprints
def blueprints(reach: Reach = None) -> "QuerySet[ListedBlueprint]":
    """Blueprints with what lists show, by name."""
    found = Blueprint.objects.all() if reach is None else Blueprint.objects.filter(name__in=reach)
    return found.annotate(
        newest=Max("versions__number"),
        versions_total=Count("versions"),
        published_at=Max("versions__created_at"),
    ).order_by("name")


def blueprint_version(
    name: str, number: int | None = None, reach: Reach = None
) -> BlueprintVersion:
    """A published version, the newest unless said otherwise."""
    found = None
    # What is no name at all may not even be text that PostgreSQL takes.
    if BLUEPRINT_NAME.match(name) and (reach is None or name in reach):
        versions = BlueprintVersion.objects.select_related("blueprint").filter(blueprint__name=name)
        if number is not None:
            versions = versions.filter(number=number)
        found = versions.order_by("-number").first()
    if found is None:
        wanted = name if number is None else f"{name}@{number}"
        raise NotFound(f"There is no blueprint {wanted!r}.", field="blueprint")
    return found


def versions_of(blueprint: Blueprint) -> QuerySet[BlueprintVersion]:
    """The newest versions of a blueprint, without their content."""
    return blueprint.versions.defer("content").order_by("-number")[:MAX_VERSIONS]


# --- inside
def _counted(reach: Reach) -> "QuerySet[CountedExecution]":
    done = Count("steps", filter=Q(steps__state__in=sorted(TERMINAL_STEP)))
    runs = _reached(Execution.objects.select_related("blueprint_version__blueprint"), reach)
    return (
        runs.defer("blueprint_version__content")
        .annotate(steps_total=Count("steps"), steps_done=done)
        .order_by("-created_at", "id")
    )


def _reached(runs: QuerySet[Execution], reach: Reach) -> QuerySet[Execution]:
    if reach is None:
        return runs
    return runs.filter(blueprint_version__blueprint__name__in=reach)


def no_execution(public_id: str) -> NotFound:
    """What is said of a run that is not there, or not the asking tenant's, or out of reach."""
    return NotFound(f"There is no execution {public_id}.", field="id")
