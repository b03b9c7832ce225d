"""The registry of workers: who lives, what they offer, what they hold. Entered as the platform.

Timing: background-worker. Model: sync. Guarantee: a lease is renewed on the database's clock, or not at all.
Failure: bubble; no row back from a renewal means that others have ended this boot.
"""

import hashlib
import json
from collections.abc import Sequence
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
from isolane.protocol import Catalogue as CatalogueFrame
from tenants.isolation import Isolation
from tenants.statement import Statement


class RenewedRow(NamedTuple):
    """The boot that was renewed, with a ticket that it holds, or without one."""

    boot: UUID
    execution_id: UUID | None
    tenant_id: int
    epoch: int
    cancel_requested: bool
    overdue: bool


# Locks:   the worker's row.
# Guard:   its lease has not lapsed.
# Writes:  the lease, and whether it drains and is reachable.
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
    """Nobody has told us yet which nodes there are."""

    code = "no_worker_yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A ticket that this worker holds."""

    execution_id: UUID
    tenant_id: int
    epoch: int
    cancel_requested: bool
    overdue: bool = False  # its run has used up its time


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What a run submitted now can be bound to."""

    catalogue: str
    isolation_levels: frozenset[Isolation]


def store_catalogue(frame: CatalogueFrame) -> str:
    """Keep what a runner described; returns its version, the hash of the content."""
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
    """Make this boot known and placeable."""
    Worker.objects.create(
        boot=boot,
        node_name=node_name,
        lane=lane,
        capacity=capacity,
        isolation_levels=list(levels),
        catalogue_id=catalogue,
        lease_until=Now() + timedelta(seconds=settings.LEASE_SECONDS),
    )


def renew(boot: UUID, *, draining: bool, reachable: bool = True) -> list[Held] | None:
    """Renew the lease and return what this boot holds, in one statement; none means that it is no longer ours."""
    told: dict[str, UUID | int | bool] = {
        "boot": boot,
        "lease": settings.LEASE_SECONDS,
        "draining": draining,
        "reachable": reachable,
    }
    rows = RENEW.fetch_all(told)
    if not rows:
        return None
    return [
        Held(
            execution_id=row.execution_id,
            tenant_id=row.tenant_id,
            epoch=row.epoch,
            cancel_requested=row.cancel_requested,
            overdue=row.overdue,
        )
        for row in rows
        if row.execution_id is not None
    ]


def living() -> QuerySet[Worker]:
    """The boots whose lease is valid."""
    return Worker.objects.filter(lease_until__gt=Now())


def lapsed() -> list[Worker]:
    """The boots whose lease has run out."""
    return list(Worker.objects.filter(lease_until__lte=Now()))


def held_by(boot: UUID) -> list[Held]:
    """What a boot holds, for whoever ends it."""
    fields = ("execution_id", "tenant_id", "epoch", "cancel_requested")
    is_over = Coalesce(Q(deadline__lte=Now()), Value(False), output_field=BooleanField())  # noqa: FBT003
    found = Ticket.objects.filter(worker=boot).annotate(overdue=is_over)
    return [Held(**row) for row in found.values(*fields, "overdue")]


def stop_placing(boot: UUID) -> None:
    """Nothing more is placed on this boot."""
    Worker.objects.filter(boot=boot).update(draining=True)


def remove(boot: UUID) -> None:
    """Forget a boot that holds nothing."""
    Worker.objects.filter(boot=boot, tickets=None).delete()


def current_offer() -> Offer:
    """What the living workers offer; while none lives, what the last one did, so that submissions are not lost."""
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
