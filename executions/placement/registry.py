"""The registry of worker boots: their leases, offers and placements. Called as the platform.

Timing: background-worker.
Model: sync.
Guarantee: a lease is renewed on the database's clock, or not at all.
Failure: bubble; no row back from a renewal means that another worker has ended this boot.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import BooleanField, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from executions.placement.models import Catalogue, Ticket, Worker
from executions.states import TicketState
from foundation.errors import Unavailable
from isolane.protocol import NodeCatalogue
from resources.placement import Placement
from tenants.isolation import Isolation
from tenants.statement import Statement


class RenewedRow(NamedTuple):
    """The boot that was renewed, with one of its tickets, if any."""

    boot: UUID
    execution_id: UUID | None
    tenant_id: int
    epoch: int
    cancel_requested: bool
    overdue: bool


# Locks:   the worker's row.
# Guard:   its lease has not lapsed.
# Writes:  the lease, and the flags "draining" and "reachable".
# Events:  none.
# Returns: a row for each ticket that it holds, one without a ticket if it holds none; no row if the lease has lapsed.
RENEW = Statement(
    "renew",
    f"""
WITH me AS (
    UPDATE placement_worker
    SET lease_until = now() + make_interval(secs => %(lease)s), draining = draining OR %(draining)s,
        reachable = %(reachable)s
    WHERE boot = %(boot)s AND lease_until > now() RETURNING boot
)
SELECT me.boot, t.execution_id, t.tenant_id, t.epoch, t.cancel_requested,
       coalesce(t.deadline <= now(), false) AS overdue
FROM me LEFT JOIN placement_ticket t ON t.worker_id = me.boot AND t.state = '{TicketState.PLACED}'""",  # noqa: S608 - a constant
    parameters=("boot", "lease", "draining", "reachable"),
    row=RenewedRow,
)


class NoWorkerYet(Unavailable):
    """No worker has registered yet, so no nodes are known."""

    code = "no_worker_yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldPlacement:
    """A placement that a boot holds, as its ticket has it now."""

    placement: Placement
    cancel_requested: bool
    overdue: bool  # its run has used up its time


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The catalogue and levels that a run submitted now can be bound to."""

    catalogue: str
    isolation_levels: frozenset[Isolation]


def store_catalogue(frame: NodeCatalogue) -> str:
    """Store the nodes that a runner described; returns their version, the hash of the content."""
    nodes = [asdict(node) for node in frame.nodes]
    packages = {**frame.packages, "python": frame.python}
    canonical = json.dumps([nodes, packages], sort_keys=True, separators=(",", ":"))
    version = hashlib.sha256(canonical.encode()).hexdigest()
    Catalogue.objects.update_or_create(
        version=version,
        defaults={"offered_at": timezone.now()},
        create_defaults={"nodes": nodes, "packages": packages, "offered_at": timezone.now()},
    )
    return version


def register(
    *, boot: UUID, node_name: str, lane: str, capacity: int, levels: Sequence[str], catalogue: str
) -> None:
    """Register a boot: from now on runs are placed on it."""
    Worker.objects.create(
        boot=boot,
        node_name=node_name,
        lane=lane,
        capacity=capacity,
        isolation_levels=list(levels),
        catalogue_id=catalogue,
        lease_until=Now() + timedelta(seconds=settings.LEASE_SECONDS),
    )


def renew(
    *, boot: UUID, node_name: str, lane: str, draining: bool, reachable: bool
) -> list[HeldPlacement] | None:
    """Renew a boot's lease and return its placements, in one statement; None means that the boot was ended."""
    parameters: dict[str, UUID | int | bool] = {
        "boot": boot,
        "lease": settings.LEASE_SECONDS,
        "draining": draining,
        "reachable": reachable,
    }
    rows = RENEW.fetch_all(parameters)
    if not rows:
        return None
    held = [
        (row.execution_id, row.tenant_id, row.epoch, row.cancel_requested, row.overdue)
        for row in rows
        if row.execution_id is not None
    ]
    return _held_placements(held, boot=boot, node_name=node_name, lane=lane)


def living() -> QuerySet[Worker]:
    """Return the boots whose lease is valid."""
    return Worker.objects.filter(lease_until__gt=Now())


def lapsed() -> list[Worker]:
    """Return the boots whose lease has lapsed."""
    return list(Worker.objects.filter(lease_until__lte=Now()))


def held_by(worker: Worker) -> list[HeldPlacement]:
    """Return the placements of a boot, for the process that ends it."""
    fields = ("execution_id", "tenant_id", "epoch", "cancel_requested", "overdue")
    is_over = Coalesce(Q(deadline__lte=Now()), Value(False), output_field=BooleanField())  # noqa: FBT003
    found = Ticket.objects.filter(worker=worker.boot).annotate(overdue=is_over)
    return _held_placements(
        found.values_list(*fields), boot=worker.boot, node_name=worker.node_name, lane=worker.lane
    )


def _held_placements(
    rows: Iterable[tuple[UUID, int, int, bool, bool]], *, boot: UUID, node_name: str, lane: str
) -> list[HeldPlacement]:
    return [
        HeldPlacement(
            placement=Placement(
                tenant_id=tenant_id,
                execution_id=execution_id,
                epoch=epoch,
                boot=boot,
                worker=node_name,
                lane=lane,
            ),
            cancel_requested=cancel_requested,
            overdue=overdue,
        )
        for execution_id, tenant_id, epoch, cancel_requested, overdue in rows
    ]


def stop_placing(boot: UUID) -> None:
    """Place nothing more on this boot."""
    Worker.objects.filter(boot=boot).update(draining=True)


def remove(boot: UUID) -> None:
    """Delete the row of a boot, unless it still holds a ticket."""
    Worker.objects.filter(boot=boot, tickets=None).delete()


def current_offer() -> Offer:
    """Return the offer of the living workers; if none lives, that of the last one, so that runs can be submitted."""
    workers = list(living().order_by("-started_at"))
    if workers:
        levels = {Isolation(level) for worker in workers for level in worker.isolation_levels}
        return Offer(catalogue=workers[0].catalogue_id, isolation_levels=frozenset(levels))
    catalogue = Catalogue.objects.order_by("-offered_at").first()
    if catalogue is None:
        raise NoWorkerYet(
            "No worker has started yet, so it is not known what can be run; start one."
        )
    configured = frozenset(Isolation(level) for level in settings.RUNTIMES)
    return Offer(catalogue=catalogue.version, isolation_levels=configured)
