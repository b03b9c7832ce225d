"""Admission: gives free slots to waiting runs. Runs in whatever process, as the platform.

Timing: request-time and background-worker. Model: sync. Guarantee: at-least-once; a lost wake-up cannot happen, since
the holder of the lock reads the dirty counter again after it has let go.
Failure: bubble; nothing is placed that is not committed, and what is committed but not sent, the worker's loop sends.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from executions.placement.rules import Decision, FreeWorker, Snapshot, WaitingTicket, decide
from tenants.scope import platform_scope

ADMISSION_LOCK = 7_231_002
BATCH = 200

# Only what fits a free worker is ranked: runs that nobody can take must not stand in the way of their tenant's others.
WAITING = """
SELECT execution_id, tenant_id, isolation, catalogue_id, free FROM (
    SELECT t.execution_id, t.tenant_id, t.isolation, t.catalogue_id, t.waiting_since,
           q.max_running - coalesce(held.n, 0) AS free,
           row_number() OVER (PARTITION BY t.tenant_id ORDER BY t.waiting_since) AS place
    FROM placement_ticket t
    JOIN unnest(%(catalogues)s::text[], %(levels)s::text[]) AS offer(catalogue, level)
      ON offer.catalogue = t.catalogue_id AND offer.level = t.isolation
    JOIN tenants_tenant n ON n.id = t.tenant_id AND n.status = 'active'
    JOIN tenants_quota q ON q.tenant_id = t.tenant_id
    LEFT JOIN (SELECT tenant_id, count(*) AS n FROM placement_ticket WHERE state = 'placed' GROUP BY tenant_id) held
           ON held.tenant_id = t.tenant_id
    WHERE t.state = 'waiting' AND NOT t.cancel_requested
) ranked
WHERE place <= free ORDER BY waiting_since LIMIT %(batch)s"""

WORKERS = """
SELECT w.boot, w.lane, w.capacity - count(t.execution_id), w.catalogue_id, w.isolation_levels
FROM placement_worker w LEFT JOIN placement_ticket t ON t.worker_id = w.boot AND t.state = 'placed'
WHERE w.lease_until > now() AND NOT w.draining
GROUP BY w.boot HAVING w.capacity > count(t.execution_id)"""

PLACE = """
UPDATE placement_ticket t SET state = 'placed', worker_id = d.boot
FROM unnest(%(executions)s::uuid[], %(boots)s::uuid[]) AS d(execution, boot)
WHERE t.execution_id = d.execution AND t.state = 'waiting'
RETURNING t.execution_id, t.tenant_id, t.epoch, t.worker_id"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A run that has just been given a slot and whose chain is to be sent."""

    execution_id: UUID
    tenant_id: int
    epoch: int
    boot: UUID
    lane: str


def admit() -> list[Placed]:
    """Place what fits, until nobody has asked for more meanwhile. The caller publishes, outside the lock."""
    placed: list[Placed] = []
    with platform_scope(), connection.cursor() as cursor:
        cursor.execute("SELECT nextval('placement_dirty')")
        while True:
            dirty = _dirty(cursor)
            batch = _pass(cursor)
            if batch is None:
                return placed
            placed += batch
            # Somebody who found the lock taken has raised the counter before: look again for him.
            if _dirty(cursor) == dirty and len(batch) < BATCH:
                return placed


def _pass(cursor: Any) -> list[Placed] | None:
    """One round under the lock; none if another process holds it."""
    with transaction.atomic():
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [ADMISSION_LOCK])
        if not cursor.fetchone()[0]:
            return None
        decisions = decide(_snapshot(cursor))
        return list(_place(cursor, decisions)) if decisions else []


def _snapshot(cursor: Any) -> Snapshot:
    cursor.execute(WORKERS)
    workers = [
        FreeWorker(
            boot=row[0],
            lane=row[1],
            free=row[2],
            catalogue=row[3],
            isolation_levels=frozenset(_json(row[4])),
        )
        for row in cursor.fetchall()
    ]
    if not workers:
        return Snapshot(waiting=(), workers=(), free_by_tenant={})
    offers = sorted(
        {(worker.catalogue, level) for worker in workers for level in worker.isolation_levels}
    )
    cursor.execute(
        WAITING,
        {
            "catalogues": [catalogue for catalogue, _ in offers],
            "levels": [level for _, level in offers],
            "batch": BATCH,
        },
    )
    rows = cursor.fetchall()
    waiting = [
        WaitingTicket(execution_id=row[0], tenant_id=row[1], isolation=row[2], catalogue=row[3])
        for row in rows
    ]
    return Snapshot(
        waiting=waiting, workers=workers, free_by_tenant={row[1]: row[4] for row in rows}
    )


def _place(cursor: Any, decisions: list[Decision]) -> Iterator[Placed]:
    lanes = {decision.boot: decision.lane for decision in decisions}
    cursor.execute(
        PLACE,
        {
            "executions": [decision.execution_id for decision in decisions],
            "boots": [decision.boot for decision in decisions],
        },
    )
    for execution_id, tenant_id, epoch, boot in cursor.fetchall():
        yield Placed(
            execution_id=execution_id, tenant_id=tenant_id, epoch=epoch, boot=boot, lane=lanes[boot]
        )


def _dirty(cursor: Any) -> int:
    cursor.execute("SELECT last_value FROM placement_dirty")
    value: int = cursor.fetchone()[0]
    return value


def _json(value: Any) -> list[str]:
    """Django's connections hand JSON over as text."""
    decoded: list[str] = json.loads(value)
    return decoded
