"""Runs that no living worker can take, because all offer other nodes than the run was submitted with.

A run relies on the contracts of nodes (`executions.placement.contracts`), not on versions of packages: when all workers
of its catalogue are gone, it goes on with a catalogue that covers the same contracts. So an upgrade strands no run.
"""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from executions.placement.contracts import covers
from executions.placement.models import Catalogue, Ticket
from executions.placement.registry import living
from executions.placement.run_scope import run_scope
from executions.states import ExecutionState, TicketState
from executions.transitions.end_waiting import end_waiting
from executions.transitions.explain_waiting import explain_waiting
from isolane.results import Code
from tenants.scope import platform_scope

NOTED_EVERY = timedelta(minutes=1)
BATCH = 100


def settle_unplaceable() -> None:
    """Bind each to workers that offer the same contracts; else record why it waits, and end it after a time."""
    with platform_scope():
        offered = set(living().values_list("catalogue_id", flat=True))
        _note_offered(offered)
        _bind_again(offered)
        stranded = list(
            Ticket.objects.select_related("catalogue")
            .filter(state=TicketState.WAITING)
            .exclude(catalogue_id__in=offered)
            .order_by("waiting_since")[:BATCH]
        )
    for ticket in stranded:
        with run_scope(ticket.tenant_id):
            _settle(ticket)


def _note_offered(versions: set[str]) -> None:
    now = timezone.now()
    stale = Catalogue.objects.filter(version__in=versions, offered_at__lt=now - NOTED_EVERY)
    stale.update(offered_at=now)


def _bind_again(offered: set[str]) -> None:
    """Bind waiting runs of catalogues that no worker offers any more to one that covers the same contracts."""
    waiting = Ticket.objects.filter(state=TicketState.WAITING).exclude(catalogue_id__in=offered)
    wanted = set(waiting.order_by().values_list("catalogue_id", "isolation").distinct())
    if not wanted:
        return
    known = Catalogue.objects.in_bulk(offered | {version for version, _ in wanted})
    # The newest first, as for runs that are submitted now. A run must not be bound to workers that cannot take it.
    workers = list(living().filter(draining=False, reachable=True).order_by("-started_at"))
    for version, level in wanted:
        for worker in workers:
            nodes = known[worker.catalogue_id].nodes
            if level in worker.isolation_levels and covers(nodes, known[version].nodes):
                bound = waiting.filter(catalogue_id=version, isolation=level)
                bound.update(catalogue_id=worker.catalogue_id)
                break


def _settle(ticket: Ticket) -> None:
    wanted = f"catalogue {ticket.catalogue_id[:12]}"
    since = max(ticket.waiting_since, ticket.catalogue.offered_at)
    patience = settings.CATALOGUE_PATIENCE
    if timezone.now() - since > patience:
        minutes = int(patience.total_seconds() // 60)
        message = (
            f"No worker offered the nodes it was submitted with ({wanted}) for {minutes} minutes."
        )
        end_waiting(
            ticket.execution_id, ExecutionState.FAILED, code=Code.CATALOGUE_MISSING, message=message
        )
    else:
        explain_waiting(
            ticket.execution_id,
            f"Waits for a worker that offers the nodes it was submitted with ({wanted}).",
        )
