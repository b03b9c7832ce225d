"""The ledger of a run's resources: credentials are committed before they are made, records ride with the others."""

import json
from collections.abc import Sequence

from executions.models.sealing import seal
from executions.semantics.record_error import RecordErrorCode
from executions.semantics.resource_tracker import TrackedResource
from executions.transitions.fence import FENCE_UNLESS_CANCELLED
from resources.credentials import Credential, ResourceRequest
from resources.ledger.models import IssuedCredential
from resources.placement import Placement
from tenants.statement import fetch_row

# For statements with a CTE called `run`, which gives the run's id.
HELD = """, held AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, closed_at, ended,
         error_code, error)
    SELECT run.id, %(epoch)s::int, h.resource_id, h.name, h.type, h.definition, h.step, h.opened_at, h.closed_at,
           h.ended, h.error_code, h.error
    FROM run, jsonb_to_recordset(%(held)s::jsonb)
              AS h(resource_id text, name text, type text, definition text, step text, opened_at timestamptz,
                   closed_at timestamptz, ended text, error_code text, error text)
    ON CONFLICT (execution_id, resource_id)
        DO UPDATE SET closed_at = excluded.closed_at, ended = excluded.ended, error_code = excluded.error_code,
                      error = excluded.error
        WHERE executions_resourcerecord.epoch = excluded.epoch -- an earlier placement's is not this one's to change
)"""

# The placement is over: revoked credentials leave the ledger; handles whose end was not reported went with their
# runtime. A credential that is still in the ledger stays open, for the sweeper.
SETTLED = """, settled AS (
    DELETE FROM public.ledger_issuedcredential i USING run
    WHERE i.execution_id = run.id AND i.epoch = %(epoch)s::int AND i.remote_id = ANY(%(revoked)s::text[])
), swept AS (
    UPDATE executions_resourcerecord r SET ended = 'swept', closed_at = greatest(now(), r.opened_at)
    FROM run
    WHERE r.execution_id = run.id AND r.epoch <= %(epoch)s::int AND r.closed_at IS NULL
      AND r.resource_id <> ALL(%(held_ids)s::text[])
      AND NOT EXISTS (
          SELECT 1 FROM public.ledger_issuedcredential i WHERE i.execution_id = run.id AND i.remote_id = r.resource_id)
)"""

ISSUE = f"""
WITH {FENCE_UNLESS_CANCELLED}, thing AS (
    SELECT fence.execution_id, t.*
    FROM fence, unnest(%(kinds)s::text[], %(remote_ids)s::text[], %(types)s::text[], %(names)s::text[],
                       %(definitions)s::text[], %(data)s::bytea[]) AS t(kind, remote_id, type, name, definition, data)
), issued AS (
    INSERT INTO public.ledger_issuedcredential
        (tenant_id, execution_id, epoch, resource_type, definition, kind, remote_id, data, issued_at, sweep_at, sweeps,
         swept)
    SELECT %(tenant)s::bigint, execution_id, %(epoch)s::int, type, definition, kind, remote_id, data, now(), now(), 0,
           false
    FROM thing
    ON CONFLICT (execution_id, epoch, kind, remote_id) DO NOTHING
), record AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, ended, error_code, error)
    SELECT execution_id, %(epoch)s::int, remote_id, name, kind, definition, '', now(), '', '', '' FROM thing
    ON CONFLICT (execution_id, resource_id) DO NOTHING
)
SELECT count(*) FROM thing"""  # noqa: S608 - the fence is a constant

# A worker that was stopped while it issued may wake up and make what was just revoked: so it is revoked once more.
SWEPT = """
WITH issued AS (
    SELECT id, execution_id, remote_id, swept FROM public.ledger_issuedcredential
    WHERE id = %(id)s::bigint AND swept = %(was_swept)s::bool FOR UPDATE
), gone AS (
    DELETE FROM public.ledger_issuedcredential i USING issued WHERE i.id = issued.id AND issued.swept
), again AS (
    UPDATE public.ledger_issuedcredential i
    SET swept = true, sweeps = 0, sweep_at = now() + make_interval(secs => %(again_s)s::float8)
    FROM issued WHERE i.id = issued.id AND NOT issued.swept
), record AS (
    UPDATE executions_resourcerecord r SET ended = 'swept', closed_at = greatest(now(), r.opened_at)
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.remote_id AND r.closed_at IS NULL
)
SELECT id FROM issued"""

# Other credentials of the same definition wait, too: a remote server that does not answer must not hold up others.
NOT_SWEPT = """
WITH issued AS (
    UPDATE public.ledger_issuedcredential
    SET sweeps = sweeps + 1, sweep_at = now() + make_interval(secs => least(2 ^ least(sweeps, 10), 300))
    WHERE id = %(id)s::bigint RETURNING id, tenant_id, execution_id, remote_id
), others AS (
    UPDATE public.ledger_issuedcredential i SET sweep_at = now() + interval '30 s'
    FROM issued
    WHERE i.tenant_id = issued.tenant_id AND i.definition = %(definition)s::text AND i.id <> issued.id
      AND i.sweep_at < now() + interval '30 s'
), record AS (
    UPDATE executions_resourcerecord r SET error_code = '', error = %(error)s::text
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.remote_id AND r.closed_at IS NULL
)
SELECT remote_id FROM issued"""


# Of placements that are over, the last issued first.
DUE = """
SELECT i.id, i.tenant_id, i.execution_id, i.epoch, i.resource_type, i.definition, i.kind, i.remote_id, i.data, i.swept
FROM public.ledger_issuedcredential i
LEFT JOIN public.placement_ticket t ON t.execution_id = i.execution_id AND t.epoch = i.epoch AND t.state = 'placed'
WHERE i.sweep_at <= now() AND t.execution_id IS NULL
ORDER BY i.sweep_at, i.id DESC LIMIT %s"""
DUE_AT_ONCE = 50


ABANDON = """
WITH issued AS (
    DELETE FROM public.ledger_issuedcredential i WHERE i.remote_id = %(remote_id)s::text
      AND NOT EXISTS (SELECT 1 FROM public.placement_ticket t
                      WHERE t.execution_id = i.execution_id AND t.epoch = i.epoch AND t.state = 'placed')
    RETURNING i.execution_id, i.remote_id
), record AS (
    UPDATE executions_resourcerecord r
    SET ended = 'failed', closed_at = greatest(now(), r.opened_at), error_code = %(code)s::text,
        error = %(actor)s::text
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.remote_id AND r.closed_at IS NULL
)
SELECT remote_id FROM issued"""


def commit_issue(
    placement: Placement, planned: Sequence[tuple[ResourceRequest, Credential]]
) -> bool:
    """Write credentials before they are made; false if the fence refused or the run was cancelled."""
    requests, credentials = zip(*planned, strict=True)
    parameters = {
        **placement.parameters(),
        "tenant": placement.tenant_id,
        "kinds": [credential.kind for credential in credentials],
        "remote_ids": [credential.remote_id for credential in credentials],
        "types": [request.type for request in requests],
        "names": [request.name for request in requests],
        "definitions": [request.definition for request in requests],
        "data": [seal(placement.execution_id, dict(credential.data)) for credential in credentials],
    }
    row = fetch_row(ISSUE, parameters)
    return row is not None and row[0] == len(planned)


def due_for_sweep() -> list[IssuedCredential]:
    """Return credentials that ended placements have left; asked by the platform, for all tenants at once."""
    return list(IssuedCredential.objects.raw(DUE, [DUE_AT_ONCE]))


def mark_swept(issued: IssuedCredential, *, again_s: float) -> bool:
    """Record that the sweeper has revoked it; false if that was recorded already."""
    parameters = {"id": issued.pk, "was_swept": issued.swept, "again_s": again_s}
    return fetch_row(SWEPT, parameters) is not None


def mark_not_swept(issued: IssuedCredential, error: str) -> None:
    """Record a failed revocation: it is tried again later and later, as are others of the same definition."""
    fetch_row(NOT_SWEPT, {"id": issued.pk, "definition": issued.definition, "error": error})


def abandon(remote_id: str, *, actor: str) -> bool:
    """Give up a credential that cannot be revoked; false if the ledger of the tenant entered does not have it."""
    parameters = {"remote_id": remote_id, "code": RecordErrorCode.ABANDONED.value, "actor": actor}
    return fetch_row(ABANDON, parameters) is not None


def tracked_as_json(tracked: Sequence[TrackedResource]) -> str:
    """Return the parameter of HELD: one text, since the driver takes its time for each array."""
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
