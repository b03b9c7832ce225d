"""The ledger of a run's resources: what is issued is committed first, what is held rides with the other statements."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from executions.semantics.resource_tracker import Disposition, TrackedResource
from executions.states import TicketState
from executions.transitions.fence import FENCE_PARAMETERS, FENCE_UNLESS_CANCELLED, Placement
from tenants.statement import Statement, compose, named


class CommittedRow(NamedTuple):
    """How many were committed."""

    committed: int


class LedgerRow(NamedTuple):
    """The row of the ledger that was found."""

    id: int


# For statements with a CTE called `run`, which gives the run's id.
HELD = """held AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, closed_at, ended, error)
    SELECT run.id, %(epoch)s::int, h.resource_id, h.name, h.type, h.definition, h.step, h.opened_at, h.closed_at,
           h.ended, h.error
    FROM run, jsonb_to_recordset(%(held)s::jsonb)
              AS h(resource_id text, name text, type text, definition text, step text, opened_at timestamptz,
                   closed_at timestamptz, ended text, error text)
    ON CONFLICT (execution_id, resource_id)
        DO UPDATE SET closed_at = excluded.closed_at, ended = excluded.ended, error = excluded.error
        WHERE executions_resourcerecord.epoch = excluded.epoch -- an earlier placement's is not this one's to change
)"""

# The placement is over: what was revoked leaves the ledger; handles of which nobody has told the end went with their
# runtime. What is still issued stays open, for the sweeper.
SETTLED = f"""settled AS (
    DELETE FROM public.ledger_issued i USING run
    WHERE i.execution_id = run.id AND i.epoch = %(epoch)s::int AND i.far_id = ANY(%(revoked)s::text[])
), swept AS (
    UPDATE executions_resourcerecord r SET ended = '{Disposition.SWEPT}', closed_at = greatest(now(), r.opened_at)
    FROM run
    WHERE r.execution_id = run.id AND r.epoch <= %(epoch)s::int AND r.closed_at IS NULL
      AND r.resource_id <> ALL(%(held_ids)s::text[])
      AND NOT EXISTS (
          SELECT 1 FROM public.ledger_issued i WHERE i.execution_id = run.id AND i.far_id = r.resource_id)
)"""  # noqa: S608 - all constants

_THINGS = """thing AS (
    SELECT fence.execution_id, t.*
    FROM fence, unnest(%(kinds)s::text[], %(far_ids)s::text[], %(types)s::text[], %(names)s::text[],
                       %(definitions)s::text[], %(data)s::bytea[]) AS t(kind, far_id, type, name, definition, data)
)"""

_ISSUED = """issued AS (
    INSERT INTO public.ledger_issued
        (tenant_id, execution_id, epoch, resource_type, definition, kind, far_id, data, issued_at, sweep_at, sweeps,
         swept)
    SELECT %(tenant)s::bigint, execution_id, %(epoch)s::int, type, definition, kind, far_id, data, now(), now(), 0,
           false
    FROM thing
    ON CONFLICT (execution_id, epoch, kind, far_id) DO NOTHING
)"""

_RECORDS = """record AS (
    INSERT INTO executions_resourcerecord
        (execution_id, epoch, resource_id, name, type, definition, step, opened_at, ended, error)
    SELECT execution_id, %(epoch)s::int, far_id, name, kind, definition, '', now(), '', '' FROM thing
    ON CONFLICT (execution_id, resource_id) DO NOTHING
)"""

# Locks:   the ticket FOR SHARE.
# Guard:   fence, no cancel asked for; what is there already is left as it is.
# Writes:  the ledger, and a record of each in the tenant's schema.
# Events:  none.
# Returns: how many were given to it, none if it is refused.
ISSUE = Statement(
    "issue",
    compose(
        FENCE_UNLESS_CANCELLED,
        _THINGS,
        _ISSUED,
        _RECORDS,
        then="SELECT count(*) AS committed FROM thing",
    ),
    parameters=(
        *FENCE_PARAMETERS,
        "tenant",
        "kinds",
        "far_ids",
        "types",
        "names",
        "definitions",
        "data",
    ),
    row=CommittedRow,
)

_LOCKED_ISSUED = """issued AS (
    SELECT id, execution_id, far_id, swept FROM public.ledger_issued
    WHERE id = %(id)s::bigint AND swept = %(was_swept)s::bool FOR UPDATE
)"""

# A worker that was stopped in the middle may wake up and make what was just revoked: so it is looked at once more.
_GONE_OR_AGAIN = """gone AS (
    DELETE FROM public.ledger_issued i USING issued WHERE i.id = issued.id AND issued.swept
), again AS (
    UPDATE public.ledger_issued i
    SET swept = true, sweeps = 0, sweep_at = now() + make_interval(secs => %(again_s)s::float8)
    FROM issued WHERE i.id = issued.id AND NOT issued.swept
)"""

_SWEPT_RECORD = f"""record AS (
    UPDATE executions_resourcerecord r SET ended = '{Disposition.SWEPT}', closed_at = greatest(now(), r.opened_at)
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.far_id AND r.closed_at IS NULL
)"""  # noqa: S608 - all constants

# Locks:   the row of the ledger, the record.
# Guard:   nobody else has written that it was swept.
# Writes:  it is looked at once more later; the second time it is deleted. Its record has ended.
# Events:  none.
# Returns: the row; no row if it was written before.
SWEPT = Statement(
    "swept",
    compose(_LOCKED_ISSUED, _GONE_OR_AGAIN, _SWEPT_RECORD, then="SELECT id FROM issued"),
    parameters=("id", "was_swept", "again_s"),
    row=LedgerRow,
)

_POSTPONED = """issued AS (
    UPDATE public.ledger_issued
    SET sweeps = sweeps + 1, sweep_at = now() + make_interval(secs => least(2 ^ least(sweeps, 10), 300))
    WHERE id = %(id)s::bigint RETURNING id, tenant_id, execution_id, far_id
)"""

# What else this far side has of ended placements waits, too: one that does not answer must not hold up the others.
_POSTPONED_OTHERS = """others AS (
    UPDATE public.ledger_issued i SET sweep_at = now() + interval '30 s'
    FROM issued
    WHERE i.tenant_id = issued.tenant_id AND i.definition = %(definition)s::text AND i.id <> issued.id
      AND i.sweep_at < now() + interval '30 s'
)"""

_FAILED_RECORD = """record AS (
    UPDATE executions_resourcerecord r SET error = %(error)s::text
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.far_id AND r.closed_at IS NULL
)"""

# Locks:   the row of the ledger, others of its definition, the record.
# Guard:   none.
# Writes:  when they are looked at again; in the record, why it could not be revoked.
# Events:  none.
# Returns: the row; no row if it is gone.
NOT_SWEPT = Statement(
    "not_swept",
    compose(_POSTPONED, _POSTPONED_OTHERS, _FAILED_RECORD, then="SELECT id FROM issued"),
    parameters=("id", "definition", "error"),
    row=LedgerRow,
)

# Locks:   nothing.
# Guard:   the placement is over, and it is time.
# Writes:  nothing.
# Events:  none.
# Returns: rows of the ledger, the last issued first. Run over a cursor of Django's, for it is not prepared.
DUE = named(
    "due_for_sweep",
    f"""
SELECT i.id, i.tenant_id, i.execution_id, i.epoch, i.resource_type, i.definition, i.kind, i.far_id, i.data, i.swept
FROM public.ledger_issued i
LEFT JOIN public.placement_ticket t ON t.execution_id = i.execution_id AND t.epoch = i.epoch
      AND t.state = '{TicketState.PLACED}'
WHERE i.sweep_at <= now() AND t.execution_id IS NULL
ORDER BY i.sweep_at, i.id DESC LIMIT %s""",  # noqa: S608 - a constant
)
DUE_AT_ONCE = 50

_ABANDONED = f"""issued AS (
    DELETE FROM public.ledger_issued i WHERE i.far_id = %(far_id)s::text
      AND NOT EXISTS (SELECT 1 FROM public.placement_ticket t
                      WHERE t.execution_id = i.execution_id AND t.epoch = i.epoch
                        AND t.state = '{TicketState.PLACED}')
    RETURNING i.id, i.execution_id, i.far_id
)"""  # noqa: S608 - all constants

_ABANDONED_RECORD = f"""record AS (
    UPDATE executions_resourcerecord r
    SET ended = '{Disposition.FAILED}', closed_at = greatest(now(), r.opened_at), error = %(error)s::text
    FROM issued WHERE r.execution_id = issued.execution_id AND r.resource_id = issued.far_id AND r.closed_at IS NULL
)"""  # noqa: S608 - all constants

# Locks:   the row of the ledger, which is deleted; the record.
# Guard:   no placement that is valid has it.
# Writes:  the record has failed.
# Events:  none.
# Returns: the row; no row if the tenant has no such thing.
ABANDON = Statement(
    "abandon",
    compose(_ABANDONED, _ABANDONED_RECORD, then="SELECT id FROM issued"),
    parameters=("far_id", "error"),
    row=LedgerRow,
)


@dataclass(frozen=True, slots=True)
class Issued:
    """A row of the ledger."""

    id: int
    tenant_id: int
    execution_id: UUID
    epoch: int
    resource_type: str
    definition: str
    kind: str
    far_id: str
    data: bytes
    swept: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Thing:
    """Something that is about to exist at a far side, as the ledger has it."""

    kind: str
    far_id: str
    type: str  # of the resource
    name: str
    definition: str
    data: bytes  # sealed


def commit_issue(placement: Placement, things: Sequence[Thing]) -> bool:
    """Write them before they are made; false if the fence refused or a cancel was asked for."""
    parameters = {
        **placement.parameters(),
        "tenant": placement.tenant_id,
        "kinds": [thing.kind for thing in things],
        "far_ids": [thing.far_id for thing in things],
        "types": [thing.type for thing in things],
        "names": [thing.name for thing in things],
        "definitions": [thing.definition for thing in things],
        "data": [thing.data for thing in things],
    }
    row = ISSUE.fetch(parameters)
    return row is not None and row.committed == len(things)


def due_for_sweep() -> list[Issued]:
    """What ended placements have left at far sides; asked by the platform, for all tenants at once."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [DUE_AT_ONCE])
        return [Issued(*row) for row in cursor.fetchall()]


def mark_swept(issued: Issued, *, again_s: float) -> bool:
    """The sweeper has revoked it; false if somebody has written so already."""
    parameters = {"id": issued.id, "was_swept": issued.swept, "again_s": again_s}
    return SWEPT.fetch(parameters) is not None


def mark_not_swept(issued: Issued, error: str) -> None:
    """The sweeper could not revoke it; it is tried again later and later, and others of its far side not at once."""
    NOT_SWEPT.fetch({"id": issued.id, "definition": issued.definition, "error": error})


def abandon(far_id: str, error: str) -> bool:
    """Give something up that cannot be revoked; false if the ledger of the tenant entered knows no such thing."""
    return ABANDON.fetch({"far_id": far_id, "error": error}) is not None


def held_as_json(holdings: Sequence[TrackedResource]) -> str:
    """The parameter of HELD: one text, since the driver takes its time for each array."""
    return json.dumps(
        [
            {
                "resource_id": holding.resource_id,
                "name": holding.name,
                "type": holding.type,
                "definition": holding.definition,
                "step": holding.step,
                "opened_at": holding.opened_at.isoformat(),
                "closed_at": holding.closed_at.isoformat() if holding.closed_at else None,
                "ended": holding.ended.value,
                "error": holding.error,
            }
            for holding in holdings
        ]
    )
