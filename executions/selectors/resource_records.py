"""Queries for the resource records of runs, in the tenant entered."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from executions.models import Execution, ResourceRecord
from executions.selectors.executions import Reach
from executions.semantics.resource_tracker import Disposition
from executions.states import TERMINAL_EXECUTION


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """The records of one run in numbers."""

    allocated: int  # resources that came to be
    disposed: int  # of these, gone
    open: int  # of these, not gone yet
    failed: int  # resources that never came to be
    ended: dict[str, int]  # of the disposed ones, the number by disposition

    @property
    def is_clean(self) -> bool:
        """Return True if all allocated resources are gone."""
        return self.allocated == self.disposed


def records(run: Execution, *, after: int = 0) -> QuerySet[ResourceRecord]:
    """Return the records of a run, in their order, after the one with this id."""
    return ResourceRecord.objects.filter(execution_id=run.pk, id__gt=after).order_by("id")


def balance(run: Execution) -> Balance:
    """Return the balance of a run."""
    return balance_of(ResourceRecord.objects.filter(execution_id=run.pk))


def balance_of(found: QuerySet[ResourceRecord]) -> Balance:
    """Return the balance of any records."""
    counted = dict(found.order_by().values_list("ended").annotate(Count("id")))
    still_open, failed = (
        counted.pop(Disposition.OPEN.value, 0),
        counted.pop(Disposition.FAILED.value, 0),
    )
    disposed = sum(counted.values())
    return Balance(
        allocated=disposed + still_open,
        disposed=disposed,
        open=still_open,
        failed=failed,
        ended=counted,
    )


def unclosed_records(reach: Reach = None) -> QuerySet[ResourceRecord]:
    """Return the open records of runs that have ended, the oldest first; the sweeper works on them."""
    found = ResourceRecord.objects.filter(
        closed_at__isnull=True, execution__state__in=sorted(TERMINAL_EXECUTION)
    ).select_related("execution")
    if reach is not None:
        found = found.filter(execution__blueprint_version__blueprint__name__in=reach)
    return found.order_by("opened_at", "id")


def count_runs(found: QuerySet[ResourceRecord]) -> int:
    """Return the number of runs that these records belong to."""
    return found.order_by().values("execution_id").distinct().count()
