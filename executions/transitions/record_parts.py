"""Parts of statements that write the resource records of a run; they follow a part called `run`."""

import json
from collections.abc import Sequence

from executions.semantics.resource_tracker import Disposition, TrackedResource

# An earlier placement's record is not this one's to change.
TRACKED_RECORDS = """tracked AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, closed_at, ended,
         error_code, error)
    SELECT run.id, %(epoch)s::int, r.resource_id, r.name, r.type, r.definition, r.step, r.opened_at, r.closed_at,
           r.ended, r.error_code, r.error
    FROM run, jsonb_to_recordset(%(tracked)s::jsonb)
              AS r(resource_id text, name text, type text, definition text, step text, opened_at timestamptz,
                   closed_at timestamptz, ended text, error_code text, error text)
    ON CONFLICT (execution_id, resource_id)
        DO UPDATE SET closed_at = excluded.closed_at, ended = excluded.ended, error_code = excluded.error_code,
                      error = excluded.error
        WHERE executions_resourcerecord.epoch = excluded.epoch
)"""

# The placement is over: revoked credentials leave the ledger.
REVOKED_CREDENTIALS = """revoked AS (
    DELETE FROM public.ledger_issuedcredential i USING run
    WHERE i.execution_id = run.id AND i.epoch = %(epoch)s::int AND i.remote_id = ANY(%(revoked)s::text[])
)"""

# Handles whose end was not reported went with their runtime. A credential that is still in the ledger stays open, for
# the sweeper.
SWEPT_RECORDS = f"""swept AS (
    UPDATE executions_resourcerecord r SET ended = '{Disposition.SWEPT}', closed_at = greatest(now(), r.opened_at)
    FROM run
    WHERE r.execution_id = run.id AND r.epoch <= %(epoch)s::int AND r.closed_at IS NULL
      AND r.resource_id <> ALL(%(tracked_ids)s::text[])
      AND NOT EXISTS (
          SELECT 1 FROM public.ledger_issuedcredential i WHERE i.execution_id = run.id AND i.remote_id = r.resource_id)
)"""  # noqa: S608 - all constants


def tracked_as_json(tracked: Sequence[TrackedResource]) -> str:
    """Return the parameter of TRACKED_RECORDS: one text, since the driver takes its time for each array."""
    return json.dumps(
        [
            {
                "resource_id": resource.resource_id,
                "name": resource.name,
                "type": resource.type,
                "definition": resource.definition,
                "step": resource.step,
                "opened_at": resource.opened_at.isoformat(),
                "closed_at": resource.closed_at.isoformat() if resource.closed_at else None,
                "ended": resource.ended.value,
                "error_code": resource.error_code.value,
                "error": resource.error,
            }
            for resource in tracked
        ]
    )
