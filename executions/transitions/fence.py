"""The fence: a placement, and the statement that proves it is still the valid one.

Timing: background-worker. Model: sync. Guarantee: at-most-once; a writer with an old epoch gets no row back.
Failure: a lost connection is tried once more; every statement here may be repeated without harm.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection

# Statements begin with a CTE called `fence` over the ticket. Lock order: ticket, execution, step.
_FENCE = """
fence AS (
    SELECT execution_id FROM public.placement_ticket
    WHERE execution_id = %(execution)s AND epoch = %(epoch)s AND worker_id = %(boot)s AND state = 'placed'{condition}
    FOR {lock}
)"""
FENCE = _FENCE.format(condition="", lock="SHARE")
FENCE_UNLESS_CANCELLED = _FENCE.format(condition=" AND NOT cancel_requested", lock="SHARE")
FENCE_TO_RELEASE = _FENCE.format(condition=" AND NOT cancel_requested", lock="NO KEY UPDATE")
# The run is locked before its step is looked at, so that of two writers the second sees what the first has written.
LOCKED_RUN = """
locked AS (
    SELECT e.id, e.state FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    WHERE e.outcome = '' FOR NO KEY UPDATE OF e
)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """One execution's stay on one worker boot."""

    tenant_id: int
    execution_id: UUID
    epoch: int
    boot: UUID

    @property
    def key(self) -> tuple[UUID, int]:
        """What a context of this placement is found by."""
        return (self.execution_id, self.epoch)

    def parameters(self) -> dict[str, Any]:
        """What the fence compares."""
        return {"execution": self.execution_id, "epoch": self.epoch, "boot": self.boot}


def fetch_row(statement: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """Run one statement of its own transaction; on a lost connection once more over a new one."""
    try:
        return _fetch_row(statement, parameters)
    except OperationalError:
        if connection.in_atomic_block:
            raise
        connection.close()
        return _fetch_row(statement, parameters)


def _fetch_row(statement: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
