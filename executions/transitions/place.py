"""Placing: waiting tickets are given the slots that admission has chosen."""

import json
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from executions.states import TICKET_TRANSITIONS, TicketState
from executions.transitions.guards import may_become
from tenants.statement import Statement

_MAY_BE_PLACED = may_become(TICKET_TRANSITIONS, TicketState.PLACED)


class PlacedRow(NamedTuple):
    """The placed tickets as JSON; None without any."""

    placed: str | None


class PlacedTicket(NamedTuple):
    """A ticket that has just been given a slot."""

    execution_id: UUID
    tenant_id: int
    epoch: int
    boot: UUID


# Locks:   the tickets.
# Guard:   they wait.
# Writes:  tickets placed, with their deadline: the run's time that is left, or the tenant's max_run_minutes if less.
#          Nothing in tenants' schemas: a placement's first claim tells of it.
# Events:  none.
# Returns: the tickets that were placed.
PLACE = Statement(
    "place",
    f"""
WITH placed AS (
    UPDATE placement_ticket t
    SET state = '{TicketState.PLACED}', worker_id = d.boot,
        deadline = now() + make_interval(secs => least(t.time_left, q.max_run_minutes * 60))
    FROM unnest(%(executions)s::uuid[], %(boots)s::uuid[]) AS d(execution, boot), tenants_quota q
    WHERE t.execution_id = d.execution AND t.state {_MAY_BE_PLACED} AND q.tenant_id = t.tenant_id
    RETURNING t.execution_id, t.tenant_id, t.epoch, t.worker_id
)
SELECT json_agg(json_build_array(execution_id, tenant_id, epoch, worker_id))::text AS placed FROM placed""",  # noqa: S608 - all constants
    parameters=("executions", "boots"),
    row=PlacedRow,
)


def place_tickets(executions: Sequence[UUID], boots: Sequence[UUID]) -> list[PlacedTicket]:
    """Place each of these runs on the boot of the same number, if its ticket still waits; return those that it did."""
    row = PLACE.fetch({"executions": list(executions), "boots": list(boots)})
    return [
        PlacedTicket(UUID(execution_id), tenant_id, epoch, UUID(boot))
        for execution_id, tenant_id, epoch, boot in json.loads(
            row.placed if row and row.placed else "[]"
        )
    ]
