"""A write that the fence refused: an event of the run, which stays as it is."""

from typing import Literal

from executions.transitions.events import EVENT_COUNT, EVENTS
from executions.transitions.rows import RunRow
from resources.placement import Placement
from tenants.statement import Statement, compose

_HAPPENED = """happened(ordinal, kind, step, data) AS (
    SELECT 1, 'fence.refused', %(path)s::text, jsonb_build_object(
               'epoch', %(epoch)s::int, 'worker', %(worker)s::text, 'what', %(what)s::text)
)"""

# Only if another worker has ended the placement: a worker that meets the end of what it ended itself was not refused
# but late, as after a message that came twice or an answer that was lost.
_TOLD_RUN = f"""run AS (
    UPDATE executions_execution e SET last_event = e.last_event + {EVENT_COUNT}
    WHERE e.id = %(execution)s::uuid AND EXISTS (
        SELECT 1 FROM executions_executionevent ended
        WHERE ended.execution_id = e.id AND ended.kind IN ('placement.lost', 'placement.handed_over')
          AND ended.data ->> 'epoch' = %(epoch)s::int::text AND ended.data ->> 'by' IS NOT NULL)
    RETURNING e.id, e.last_event
)"""  # noqa: S608 - all constants

# Locks:   the run.
# Guard:   another worker has ended the placement.
# Writes:  nothing but the event.
# Events:  fence.refused.
# Returns: the run; no row if it was not for that.
REFUSED = Statement(
    "refused",
    compose(_HAPPENED, _TOLD_RUN, EVENTS, then="SELECT id FROM run"),
    parameters=("execution", "epoch", "path", "worker", "what"),
    row=RunRow,
)


def note_refusal(
    placement: Placement, what: Literal["claim", "checkpoint", "close"], path: str = ""
) -> bool:
    """Tell of a write that came too late, from a worker that others hold for lost; false if it was not for that."""
    parameters = {
        **placement.parameters(),
        "worker": placement.worker,
        "what": what,
        "path": path,
    }
    return REFUSED.fetch(parameters) is not None
