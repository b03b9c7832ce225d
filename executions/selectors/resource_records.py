"""The ledger of runs' resources, in the tenant entered."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from executions.models import Execution, ResourceRecord
from executions.selectors.executions import Reach
from executions.semantics.resource_tracker import Disposition
from executions.states import TERMINAL_EXECUTION


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """The ledger of one run in numbers."""

    allocated: int  # everything that came to be
    disposed: int  # of it, what is gone again
    open: int  # what is not
    failed: int  # what never came to be
    ended: dict[str, int]  # how

    @property
    def is_clean(self) -> bool:
        """True if everything that was allocated is gone."""
        return self.allocated == self.disposed


def records(run: Execution, *, after: int = 0) -> QuerySet[ResourceRecord]:
    """Return the records of a run after the one with this id."""
    return ResourceRecord.objects.filter(execution_id=run.pk, id__gt=after).order_by("id")


def balance(run: Execution) -> Balance:
    """Return the totals of a run's ledger."""
    return balance_of(ResourceRecord.objects.filter(execution_id=run.pk))


def balance_of(found: QuerySet[ResourceRecord]) -> Balance:
    """Return the totals of these records."""
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


def unclean(reach: Reach = None) -> QuerySet[ResourceRecord]:
    """Return open records of runs that have ended, the oldest first; the sweeper still tries to revoke them."""
    found = ResourceRecord.objects.filter(
        closed_at__isnull=True, execution__state__in=sorted(TERMINAL_EXECUTION)
    ).select_related("execution")
    if reach is not None:
        found = found.filter(execution__blueprint_version__blueprint__name__in=reach)
    return found.order_by("opened_at", "id")


def unclean_total(leftovers: QuerySet[ResourceRecord]) -> int:
    """Count the runs of these records."""
    return leftovers.order_by().values("execution_id").distinct().count()
