"""Connections and refusals of a run through the gate, written as its events; one statement."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.fence import FENCE, FENCE_PARAMETERS
from resources.gate.connection_log import NumberedRecord, OmittedConnections
from resources.gate.record import ConnectionRecord
from resources.placement import Placement
from tenants.statement import Statement, compose, text_set

CLOSED = "connection.closed"
REFUSED = "connection.refused"
OMITTED = "connection.omitted"
CONNECTION_KINDS = (CLOSED, REFUSED, OMITTED)


class AppendedRow(NamedTuple):
    """A run whose placement is valid."""

    is_written: bool


# A run with an outcome, too: what a teardown cuts off is written between the outcome and the close.
# `is_current`: nobody has written the run between the statement's look at it and its lock. Else an earlier try of the
# same records, its answer lost, may have been that writer, and this statement does not see its events.
_LOCKED_RUN = """locked AS (
    SELECT e.id, e.last_event = (
        SELECT seen.last_event FROM executions_execution seen WHERE seen.id = %(execution)s::uuid) AS is_current
    FROM executions_execution e JOIN fence ON e.id = fence.execution_id
    FOR NO KEY UPDATE OF e
)"""

# Records are numbered within their placement and written in this order.
_WRITTEN = f"""written AS (
    SELECT coalesce(max((earlier.data ->> 'number')::int), 0) AS number FROM executions_executionevent earlier
    WHERE earlier.execution_id = %(execution)s::uuid AND earlier.kind = ANY({text_set(CONNECTION_KINDS)})
      AND earlier.data ->> 'epoch' = %(epoch)s::int::text
)"""  # noqa: S608 - all constants

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT record.number, record.kind, '',
           jsonb_build_object('epoch', %(epoch)s::int, 'number', record.number) || record.data
    FROM locked, written, unnest(%(numbers)s::int[], %(kinds)s::text[], %(data)s::jsonb[])
                          AS record(number, kind, data)
    WHERE locked.is_current AND record.number > written.number
)"""

_TOLD_RUN = f"""run AS (
    UPDATE executions_execution e SET last_event = e.last_event + {EVENT_COUNT}
    FROM locked WHERE e.id = locked.id AND {EVENT_COUNT} > 0
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

# Locks:   the ticket FOR SHARE, the run.
# Guard:   fence; nobody has written the run meanwhile; of the records those that are not written.
# Writes:  nothing but the events.
# Events:  connection.closed, connection.refused, connection.omitted.
# Returns: true if all records are written, by now or by this; false if it must be repeated; no row if it is refused.
APPEND_CONNECTIONS = Statement(
    "append_connections",
    compose(
        FENCE,
        _LOCKED_RUN,
        _WRITTEN,
        _HAPPENED,
        _TOLD_RUN,
        EVENTS,
        then="SELECT is_current AS is_written FROM locked",
    ),
    parameters=(*FENCE_PARAMETERS, "numbers", "kinds", "data"),
    row=AppendedRow,
)


def append_connections(placement: Placement, records: Sequence[NumberedRecord]) -> bool:
    """Write records, each once; false means that the fence refused.

    A number for each record is simpler than a token for each batch, which would have to be kept on the run: records
    of a batch that may have been written can be sent again together with newer ones.
    """
    parameters = {
        **placement.parameters(),
        "numbers": [numbered.number for numbered in records],
        "kinds": [_kind(numbered.record) for numbered in records],
        "data": [json.dumps(_data(numbered.record)) for numbered in records],
    }
    while True:  # each turn but the last means that somebody else's write was committed
        row = APPEND_CONNECTIONS.fetch(parameters)
        if row is None or row.is_written:
            return row is not None


def _kind(record: ConnectionRecord | OmittedConnections) -> str:
    if isinstance(record, OmittedConnections):
        return OMITTED
    return REFUSED if record.is_refusal else CLOSED


def _data(record: ConnectionRecord | OmittedConnections) -> dict[str, Any]:
    if isinstance(record, OmittedConnections):
        return asdict(record)
    data: dict[str, Any] = {"host": record.host, "port": record.port, "reason": record.reason.value}
    if record.definition:
        data["definition"] = record.definition
    if not record.is_refusal:
        data |= {"sent": record.sent, "received": record.received}
    return {**data, "ms": round(record.seconds * 1000)}
