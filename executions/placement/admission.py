"""Admission: gives free slots to waiting runs. Runs in any process, as the platform.

Timing: request-time and background-worker.
Model: sync.
Guarantee: at-least-once; the lock's holder reads the dirty counter again, so that no wake-up is lost.
Failure: bubble; a placement that is committed but not sent is sent by the loop of its worker.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from executions.placement.rules import (
    FreeWorker,
    PlacementDecision,
    Snapshot,
    WaitingTicket,
    decide,
)
from executions.states import TicketState
from executions.transitions.place import place_tickets
from resources.placement import Placement
from tenants.scope import platform_scope
from tenants.statement import Statement, compose
from tenants.statuses import TenantStatus

ADMISSION_LOCK = 7_231_002
BATCH = 200


class LockRow(NamedTuple):
    """The counter after it was raised, and True if the lock is ours."""

    dirty: int
    held: bool


class DirtyRow(NamedTuple):
    """The counter."""

    dirty: int


class SnapshotRow(NamedTuple):
    """Free workers and waiting tickets, each as JSON; None if there are none."""

    workers: str | None
    tickets: str | None


# Locks:   the admission lock, if it is free.
# Guard:   none.
# Writes:  the counter, before it tries the lock: the lock's holder reads it again in the end and sees this request.
# Events:  none.
# Returns: the counter, and true if the lock is ours.
LOCK = Statement(
    "admission_lock",
    "SELECT nextval('placement_dirty') AS dirty, pg_try_advisory_xact_lock(%(lock)s) AS held",
    parameters=("lock",),
    row=LockRow,
)

# Locks:   nothing.
# Guard:   none.
# Writes:  nothing.
# Events:  none.
# Returns: the counter.
DIRTY = Statement(
    "admission_dirty", "SELECT last_value AS dirty FROM placement_dirty", row=DirtyRow
)

_FREE_WORKERS = f"""free_worker AS (
    SELECT w.boot, w.node_name, w.lane, w.capacity - count(t.execution_id) AS free, w.catalogue_id AS catalogue,
           w.isolation_levels
    FROM placement_worker w
    LEFT JOIN placement_ticket t ON t.worker_id = w.boot AND t.state = '{TicketState.PLACED}'
    WHERE w.lease_until > now() AND NOT w.draining AND w.reachable
    GROUP BY w.boot HAVING w.capacity > count(t.execution_id)
), offer AS (
    SELECT DISTINCT catalogue, jsonb_array_elements_text(isolation_levels) AS level FROM free_worker
)"""  # noqa: S608 - all constants

_HELD_SLOTS = f"""held AS (
    SELECT tenant_id, count(*) AS n FROM placement_ticket WHERE state = '{TicketState.PLACED}' GROUP BY tenant_id
)"""  # noqa: S608 - all constants

# The tenants with waiting tickets, found by one step along the index for each.
_WAITING_TENANTS = f"""waiting(tenant_id) AS (
    (SELECT tenant_id FROM placement_ticket
     WHERE state = '{TicketState.WAITING}' AND EXISTS (SELECT 1 FROM free_worker) ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT t.tenant_id FROM placement_ticket t
            WHERE t.state = '{TicketState.WAITING}' AND t.tenant_id > waiting.tenant_id ORDER BY t.tenant_id LIMIT 1)
    FROM waiting WHERE waiting.tenant_id IS NOT NULL
)"""  # noqa: S608 - all constants

# No more tickets of a tenant than could be placed, however many wait. Only those that fit a free worker count: a run
# that no worker can take must not block the other runs of its tenant.
_NEXT_TICKETS = f"""next AS (
    SELECT t.execution_id, t.tenant_id, t.isolation, t.catalogue_id AS catalogue, t.waiting_since, room.free
    FROM waiting
    JOIN tenants_tenant n ON n.id = waiting.tenant_id AND n.status = '{TenantStatus.ACTIVE}'
    JOIN tenants_quota q ON q.tenant_id = waiting.tenant_id
    LEFT JOIN held ON held.tenant_id = waiting.tenant_id
    CROSS JOIN LATERAL (SELECT greatest(q.max_running - coalesce(held.n, 0), 0) AS free) room
    CROSS JOIN LATERAL (
        SELECT * FROM placement_ticket t
        WHERE t.tenant_id = waiting.tenant_id AND t.state = '{TicketState.WAITING}' AND NOT t.cancel_requested
          AND EXISTS (SELECT 1 FROM offer WHERE offer.catalogue = t.catalogue_id AND offer.level = t.isolation)
        ORDER BY t.waiting_since LIMIT least(room.free, (SELECT sum(free) FROM free_worker))
    ) t
    ORDER BY t.waiting_since LIMIT %(batch)s
)"""  # noqa: S608 - all constants

# Locks:   nothing. A statement of its own, after the lock: it must see what the last holder has committed.
# Guard:   none.
# Writes:  nothing.
# Events:  none.
# Returns: free workers, and the tickets that are next.
SNAPSHOT = Statement(
    "admission_snapshot",
    compose(
        "RECURSIVE " + _FREE_WORKERS,
        _HELD_SLOTS,
        _WAITING_TENANTS,
        _NEXT_TICKETS,
        then="""
SELECT (SELECT json_agg(row_to_json(free_worker)) FROM free_worker)::text AS workers,
       (SELECT json_agg(row_to_json(next) ORDER BY waiting_since) FROM next)::text AS tickets""",
    ),
    parameters=("batch",),
    row=SnapshotRow,
)


def admit() -> list[Placement]:
    """Place runs until none fits and no other process has asked meanwhile; the caller publishes their chains."""
    placed: list[Placement] = []
    with platform_scope():
        while True:
            dirty, batch = _pass()
            if batch is None:
                return placed
            placed += batch
            # A process that found the lock taken has raised the counter first: admit once more on its behalf.
            if len(batch) < BATCH and _dirty() == dirty:
                return placed


def _pass() -> tuple[int, list[Placement] | None]:
    """Place one batch under the lock; return the counter before it, or None if another process holds the lock."""
    with transaction.atomic():
        lock = LOCK.fetch({"lock": ADMISSION_LOCK}) or LockRow(dirty=0, held=False)
        if not lock.held:
            return lock.dirty, None
        decisions = decide(_snapshot())
        return lock.dirty, list(_place(decisions)) if decisions else []


def _dirty() -> int | None:
    row = DIRTY.fetch()
    return row.dirty if row else None


def _snapshot() -> Snapshot:
    found = SNAPSHOT.fetch({"batch": BATCH}) or SnapshotRow(workers=None, tickets=None)
    workers = [
        FreeWorker(
            boot=UUID(row["boot"]),
            node_name=row["node_name"],
            lane=row["lane"],
            free=row["free"],
            catalogue=row["catalogue"],
            isolation_levels=frozenset(row["isolation_levels"]),
        )
        for row in _rows(found.workers)
    ]
    rows = _rows(found.tickets)
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
    decided = {decision.boot: decision for decision in decisions}
    executions = [decision.execution_id for decision in decisions]
    boots = [decision.boot for decision in decisions]
    for ticket in place_tickets(executions, boots):
        yield Placement(
            tenant_id=ticket.tenant_id,
            execution_id=ticket.execution_id,
            epoch=ticket.epoch,
            boot=ticket.boot,
            worker=decided[ticket.boot].worker,
            lane=decided[ticket.boot].lane,
        )


def _rows(text: str | None) -> list[Any]:
    rows: list[Any] = json.loads(text) if text else []
    return rows
