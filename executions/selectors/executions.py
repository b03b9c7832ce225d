"""Runs of the tenant entered; `reach`: names of the visible blueprints, None means all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet, prefetch_related_objects

from executions.models import Execution, Step
from executions.states import TERMINAL_STEP
from foundation.errors import InvalidInput, NotFound

Reach = frozenset[str] | None
# Large values that no list shows, and sealed ones, which are never shown.
_LARGE = ("inputs", "outputs", "variables")
_SEALED = ("sealed_inputs", "sealed_variables")


class StepCounts(TypedDict):
    """Annotations of a run in a list."""

    steps_done: int
    steps_total: int


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    CountedExecution = WithAnnotations[Execution, StepCounts]


def executions(reach: Reach = None) -> "QuerySet[CountedExecution]":
    """Return runs annotated for lists, the newest first."""
    return _counted(reach).defer(*_LARGE, *_SEALED)


def execution(public_id: str, reach: Reach = None) -> "CountedExecution":
    """Return a run with its steps, all read at the same moment."""
    with snapshot():
        found = _counted(reach).defer(*_SEALED).filter(pk=parse_id(public_id)).first()
        if found is None:
            raise no_execution(public_id)
        prefetch_related_objects([found], "steps")
    return found


def find_execution(public_id: str, reach: Reach = None) -> Execution:
    """Return a run without its steps and values, to read its state or act on it."""
    runs = Execution.objects.select_related("blueprint_version__blueprint")
    runs = _reached(runs, reach).defer(*_LARGE, *_SEALED, "blueprint_version__content")
    found = runs.filter(pk=parse_id(public_id)).first()
    if found is None:
        raise no_execution(public_id)
    return found


def labelled(runs: "QuerySet[CountedExecution]", label: str) -> "QuerySet[CountedExecution]":
    """Filter runs by a label, written as key:value."""
    key, separator, value = label.partition(":")
    if not separator or not key:
        raise InvalidInput(
            f"label is {label[:200]!r}; write key:value, such as team:billing.", field="label"
        )
    # The index leaves out runs without labels, so the query must exclude them to use it.
    return runs.exclude(labels={}).filter(labels__contains={key: value})


def last_step(run: Execution) -> Step:
    """Return the step that comes last in the blueprint."""
    return Step.objects.filter(execution_id=run.pk).order_by("-position")[0]


def parse_id(public_id: str) -> UUID:
    """Convert exec_<uuid> to the UUID."""
    try:
        return UUID(public_id.removeprefix("exec_"))
    except ValueError:
        raise InvalidInput(
            f"{public_id!r} is not an execution id; they look like exec_<uuid>.", field="id"
        ) from None


@contextmanager
def snapshot() -> Iterator[None]:
    """Open the outermost transaction, read-only; all reads inside see the same moment."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def no_execution(public_id: str) -> NotFound:
    """Return the error for a run that does not exist, is another tenant's or is out of reach."""
    return NotFound(f"There is no execution {public_id}.", field="id")


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
