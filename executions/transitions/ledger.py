"""The ledger of issued credentials: committed before they are made, kept until they are revoked or given up."""

from collections.abc import Sequence
from typing import NamedTuple

from executions.models.sealing import seal
from executions.semantics.record_error import RecordErrorCode
from executions.semantics.resource_tracker import Disposition
from executions.states import TicketState
from executions.transitions.fence import FENCE_PARAMETERS, FENCE_UNLESS_CANCELLED
from resources.credentials import Credential, ResourceRequest
from resources.ledger.models import IssuedCredential
from resources.placement import Placement
from tenants.statement import Statement, compose, named

DUE_AT_ONCE = 50


class CommittedRow(NamedTuple):
    """The number of credentials that may be made."""

    credentials: int


class CredentialRow(NamedTuple):
    """A credential that was changed."""

    remote_id: str


_PLANNED = """planned AS (
    SELECT fence.execution_id, p.*
    FROM fence, unnest(%(kinds)s::text[], %(remote_ids)s::text[], %(types)s::text[], %(names)s::text[],
                       %(definitions)s::text[], %(data)s::bytea[]) AS p(kind, remote_id, type, name, definition, data)
)"""

_LEDGER_ROWS = """issued AS (
    INSERT INTO public.ledger_issuedcredential
        (tenant_id, execution_id, epoch, resource_type, definition, kind, remote_id, data, issued_at, sweep_at, sweeps,
         swept)
    SELECT %(tenant)s::bigint, execution_id, %(epoch)s::int, type, definition, kind, remote_id, data, now(), now(), 0,
           false
    FROM planned
    ON CONFLICT (execution_id, epoch, kind, remote_id) DO NOTHING
)"""

_OPEN_RECORDS = """record AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, ended, error_code, error)
    SELECT execution_id, %(epoch)s::int, remote_id, name, kind, definition, '', now(), '', '', '' FROM planned
    ON CONFLICT (execution_id, resource_id) DO NOTHING
)"""

# Locks:   the ticket FOR SHARE.
# Guard:   fence, no cancel asked for.
# Writes:  a row of the ledger and an open record for each credential that is about to be made.
# Events:  none.
# Returns: the number of credentials; zero if it is refused.
COMMIT_ISSUE = Statement(
    "commit_issue",
    compose(
        FENCE_UNLESS_CANCELLED,
        _PLANNED,
        _LEDGER_ROWS,
        _OPEN_RECORDS,
        then="SELECT count(*) AS credentials FROM planned",
    ),
    parameters=(
        *FENCE_PARAMETERS, "tenant", "kinds", "remote_ids", "types", "names", "definitions", "data",
    ),
    row=CommittedRow,
)  # fmt: skip

_LOCKED_CREDENTIAL = """issued AS (
    SELECT id, execution_id, remote_id, swept FROM public.ledger_issuedcredential
    WHERE id = %(id)s::bigint AND swept = %(was_swept)s::bool FOR UPDATE
)"""

_FORGOTTEN = """gone AS (
    DELETE FROM public.ledger_issuedcredential i USING issued WHERE i.id = issued.id AND issued.swept
)"""

# A worker that was stopped while it issued may wake up and make what was just revoked: so it is revoked once more.
_SWEPT_AGAIN_LATER = """again AS (
    UPDATE public.ledger_issuedcredential i
    SET swept = true, sweeps = 0, sweep_at = now() + make_interval(secs => %(again_s)s::float8)
    FROM issued WHERE i.id = issued.id AND NOT issued.swept
)"""

_ITS_RECORD = "r.execution_id = issued.execution_id AND r.resource_id = issued.remote_id AND r.closed_at IS NULL"

_SWEPT_RECORD = f"""record AS (
    UPDATE executions_resourcerecord r SET ended = '{Disposition.SWEPT}', closed_at = greatest(now(), r.opened_at)
    FROM issued WHERE {_ITS_RECORD}
)"""  # noqa: S608 - all constants

# Locks:   the row of the ledger.
# Guard:   nobody has swept it since it was read.
# Writes:  the row is due once more, or gone the second time; its record is closed.
# Events:  none.
# Returns: the credential; no row if somebody else has swept it.
MARK_SWEPT = Statement(
    "mark_swept",
    compose(
        _LOCKED_CREDENTIAL,
        _FORGOTTEN,
        _SWEPT_AGAIN_LATER,
        _SWEPT_RECORD,
        then="SELECT remote_id FROM issued",
    ),
    parameters=("id", "was_swept", "again_s"),
    row=CredentialRow,
)

_POSTPONED = """issued AS (
    UPDATE public.ledger_issuedcredential
    SET sweeps = sweeps + 1, sweep_at = now() + make_interval(secs => least(2 ^ least(sweeps, 10), 300))
    WHERE id = %(id)s::bigint RETURNING id, tenant_id, execution_id, remote_id
)"""

# Other credentials of the same definition wait, too: a remote server that does not answer must not hold up others.
_POSTPONED_OTHERS = """others AS (
    UPDATE public.ledger_issuedcredential i SET sweep_at = now() + interval '30 s'
    FROM issued
    WHERE i.tenant_id = issued.tenant_id AND i.definition = %(definition)s::text AND i.id <> issued.id
      AND i.sweep_at < now() + interval '30 s'
)"""

_RECORD_WITH_ERROR = f"""record AS (
    UPDATE executions_resourcerecord r SET error_code = '', error = %(error)s::text
    FROM issued WHERE {_ITS_RECORD}
)"""  # noqa: S608 - all constants

# Locks:   the rows of the ledger.
# Guard:   none.
# Writes:  when they are tried again; the error of the record.
# Events:  none.
# Returns: the credential; no row if it is gone.
MARK_NOT_SWEPT = Statement(
    "mark_not_swept",
    compose(_POSTPONED, _POSTPONED_OTHERS, _RECORD_WITH_ERROR, then="SELECT remote_id FROM issued"),
    parameters=("id", "definition", "error"),
    row=CredentialRow,
)

_OVER = f"""NOT EXISTS (
    SELECT 1 FROM public.placement_ticket t
    WHERE t.execution_id = i.execution_id AND t.epoch = i.epoch AND t.state = '{TicketState.PLACED}')"""  # noqa: S608 - all constants

_GIVEN_UP = f"""issued AS (
    DELETE FROM public.ledger_issuedcredential i WHERE i.remote_id = %(remote_id)s::text AND {_OVER}
    RETURNING i.execution_id, i.remote_id
)"""  # noqa: S608 - all constants

_FAILED_RECORD = f"""record AS (
    UPDATE executions_resourcerecord r
    SET ended = '{Disposition.FAILED}', closed_at = greatest(now(), r.opened_at), error_code = %(code)s::text,
        error = %(actor)s::text
    FROM issued WHERE {_ITS_RECORD}
)"""  # noqa: S608 - all constants

# Locks:   the row of the ledger.
# Guard:   its placement is over.
# Writes:  the row is gone, its record is closed as failed.
# Events:  none.
# Returns: the credential; no row if it is not there, or its placement is not over.
ABANDON = Statement(
    "abandon_credential",
    compose(_GIVEN_UP, _FAILED_RECORD, then="SELECT remote_id FROM issued"),
    parameters=("remote_id", "code", "actor"),
    row=CredentialRow,
)

# Of placements that are over, the last issued first.
DUE = named(
    "due_credentials",
    f"""
SELECT i.id, i.tenant_id, i.execution_id, i.epoch, i.resource_type, i.definition, i.kind, i.remote_id, i.data, i.swept
FROM public.ledger_issuedcredential i
WHERE i.sweep_at <= now() AND {_OVER}
ORDER BY i.sweep_at, i.id DESC LIMIT %s""",  # noqa: S608 - all constants
)


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
    row = COMMIT_ISSUE.fetch(parameters)
    return row is not None and row.credentials == len(planned)


def due_for_sweep() -> list[IssuedCredential]:
    """Return credentials that ended placements have left; asked by the platform, for all tenants at once."""
    return list(IssuedCredential.objects.raw(DUE, [DUE_AT_ONCE]))


def mark_swept(issued: IssuedCredential, *, again_s: float) -> bool:
    """Record that the sweeper has revoked it; false if that was recorded already."""
    parameters = {"id": issued.pk, "was_swept": issued.swept, "again_s": again_s}
    return MARK_SWEPT.fetch(parameters) is not None


def mark_not_swept(issued: IssuedCredential, error: str) -> None:
    """Record a failed revocation: it is tried again later and later, as are others of the same definition."""
    MARK_NOT_SWEPT.fetch({"id": issued.pk, "definition": issued.definition, "error": error})


def abandon(remote_id: str, *, actor: str) -> bool:
    """Give up a credential that cannot be revoked; false if the ledger of the tenant entered does not have it."""
    parameters = {"remote_id": remote_id, "code": RecordErrorCode.ABANDONED.value, "actor": actor}
    return ABANDON.fetch(parameters) is not None
