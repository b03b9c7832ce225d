"""Admission: gives free slots to waiting runs. Runs in any process, as the platform.

Timing: request-time and background-worker. Model: sync.
Guarantee: at-least-once; no wake-up is lost, since the holder of the lock reads the dirty counter again afterwards.
Failure: bubble; a placement that is committed but not sent is sent by the loop of its worker.
"""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction

from executions.placement.rules import (
    FreeWorker,
    PlacementDecision,
    Snapshot,
    WaitingTicket,
    decide,
)
from resources.placement import Placement
from tenants.scope import platform_scope
from tenants.statement import fetch_row

ADMISSION_LOCK = 7_231_002
BATCH = 200

# The counter first: whoever holds the lock reads it again afterwards, and then sees that we have been here.
LOCK = "SELECT nextval('placement_dirty'), pg_try_advisory_xact_lock(%(lock)s)"
DIRTY = "SELECT last_value FROM placement_dirty"

# A statement of its own, after the lock: it must see what the last holder has committed.
# It looks at no more tickets of a tenant than could be placed, however many wait, and goes from tenant to tenant along
# the index. Only what fits a free worker counts: runs that nobody can take must not stand in their tenant's way.
SNAPSHOT = """
WITH RECURSIVE free_worker AS (
    SELECT w.boot, w.node_name, w.lane, w.capacity - count(t.execution_id) AS free, w.catalogue_id AS catalogue,
           w.isolation_levels
    FROM placement_worker w LEFT JOIN placement_ticket t ON t.worker_id = w.boot AND t.state = 'placed'
    WHERE w.lease_until > now() AND NOT w.draining AND w.reachable
    GROUP BY w.boot HAVING w.capacity > count(t.execution_id)
), offer AS (
    SELECT DISTINCT catalogue, jsonb_array_elements_text(isolation_levels) AS level FROM free_worker
), held AS (
    SELECT tenant_id, count(*) AS n FROM placement_ticket WHERE state = 'placed' GROUP BY tenant_id
), waiting(tenant_id) AS (
    (SELECT tenant_id FROM placement_ticket
     WHERE state = 'waiting' AND EXISTS (SELECT 1 FROM free_worker) ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT t.tenant_id FROM placement_ticket t
            WHERE t.state = 'waiting' AND t.tenant_id > waiting.tenant_id ORDER BY t.tenant_id LIMIT 1)
    FROM waiting WHERE waiting.tenant_id IS NOT NULL
), next AS (
    SELECT t.execution_id, t.tenant_id, t.isolation, t.catalogue_id AS catalogue, t.waiting_since, room.free
    FROM waiting
    JOIN tenants_tenant n ON n.id = waiting.tenant_id AND n.status = 'active'
    JOIN tenants_quota q ON q.tenant_id = waiting.tenant_id
    LEFT JOIN held ON held.tenant_id = waiting.tenant_id
    CROSS JOIN LATERAL (SELECT greatest(q.max_running - coalesce(held.n, 0), 0) AS free) room
    CROSS JOIN LATERAL (
        SELECT * FROM placement_ticket t
        WHERE t.tenant_id = waiting.tenant_id AND t.state = 'waiting' AND NOT t.cancel_requested
          AND EXISTS (SELECT 1 FROM offer WHERE offer.catalogue = t.catalogue_id AND offer.level = t.isolation)
        ORDER BY t.waiting_since LIMIT least(room.free, (SELECT sum(free) FROM free_worker))
    ) t
    ORDER BY t.waiting_since LIMIT %(batch)s
)
SELECT (SELECT json_agg(row_to_json(free_worker)) FROM free_worker)::text,
       (SELECT json_agg(row_to_json(next) ORDER BY waiting_since) FROM next)::text"""

PLACE = """
WITH placed AS (
    UPDATE placement_ticket t
    SET state = 'placed', worker_id = d.boot, deadline = now() + make_interval(secs => t.time_left)
    FROM unnest(%(executions)s::uuid[], %(boots)s::uuid[]) AS d(execution, boot)
    WHERE t.execution_id = d.execution AND t.state = 'waiting'
    RETURNING t.execution_id, t.tenant_id, t.epoch, t.worker_id
)
SELECT json_agg(json_build_array(execution_id, tenant_id, epoch, worker_id))::text FROM placed"""


def admit() -> list[Placement]:
    """Place runs until nothing fits and no other process has asked meanwhile; the caller publishes their chains."""
    placed: list[Placement] = []
    with platform_scope():
        while True:
            dirty, batch = _pass()
            if batch is None:
                return placed
            placed += batch
            # A process that found the lock taken has raised the counter before: look again in its place.
            if len(batch) < BATCH and _value(DIRTY) == dirty:
                return placed


def _pass() -> tuple[int, list[Placement] | None]:
    """Place one batch under the lock; returns the counter before it, and none if another process holds the lock."""
    with transaction.atomic():
        row = fetch_row(LOCK, {"lock": ADMISSION_LOCK})
        dirty, held = row or (0, False)
        if not held:
            return dirty, None
        decisions = decide(_snapshot())
        return dirty, list(_place(decisions)) if decisions else []


def _snapshot() -> Snapshot:
    found = fetch_row(SNAPSHOT, {"batch": BATCH}) or ("", "")
    workers = [
        FreeWorker(
            boot=UUID(row["boot"]),
            node_name=row["node_name"],
            lane=row["lane"],
            free=row["free"],
            catalogue=row["catalogue"],
            isolation_levels=frozenset(row["isolation_levels"]),
        )
        for row in _rows(found[0])
    ]
    rows = _rows(found[1])
    waiting = [
        WaitingTicket(
            execution_id=UUID(row["execution_id"]),
            tenant_id=row["tenant_id"],
            isolation=row["isolation"],
            catalogue=row["catalogue"],
        )
        for row in rows
    ]
    free = {row["tenant_id"]: row["free"] for row in rows}
    return Snapshot(waiting=waiting, workers=workers, free_by_tenant=free)


def _place(decisions: list[PlacementDecision]) -> Iterator[Placement]:
    decided = {str(decision.boot): decision for decision in decisions}
    executions = [decision.execution_id for decision in decisions]
    boots = [decision.boot for decision in decisions]
    for execution_id, tenant_id, epoch, boot in _rows(
        _value(PLACE, {"executions": executions, "boots": boots})
    ):
        yield Placement(
            tenant_id=tenant_id,
            execution_id=UUID(execution_id),
            epoch=epoch,
            boot=UUID(boot),
            worker=decided[boot].worker,
            lane=decided[boot].lane,
        )


def _value(statement: str, parameters: dict[str, Any] | None = None) -> Any:
    row = fetch_row(statement, parameters or {})
    return row[0] if row else None


def _rows(text: str | None) -> list[Any]:
    rows: list[Any] = json.loads(text) if text else []
    return rows
