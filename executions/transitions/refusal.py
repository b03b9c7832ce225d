"""What the fence refused: an event of the run, though the run itself is left as it is."""

from typing import Literal

from executions.transitions.fence import Placement, fetch_row

# Only if another worker has ended the placement: a worker that meets the end of what it ended itself was not refused
# but late, as after a message that came twice or an answer that was lost.
REFUSED = """
WITH run AS (
    UPDATE executions_execution e SET last_event = e.last_event + 1
    WHERE e.id = %(execution)s::uuid AND EXISTS (
        SELECT 1 FROM executions_executionevent ended
        WHERE ended.execution_id = e.id AND ended.kind IN ('placement.lost', 'placement.handed_over')
          AND ended.data ->> 'epoch' = %(epoch)s::int::text AND ended.data ->> 'by' IS NOT NULL)
    RETURNING e.id, e.last_event
), event AS (
    INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)
    SELECT id, last_event, now(), 'fence.refused', %(path)s::text,
           jsonb_build_object('epoch', %(epoch)s::int, 'worker', %(worker)s::text, 'what', %(what)s::text)
    FROM run
)
SELECT id FROM run"""


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
    return fetch_row(REFUSED, parameters) is not None
