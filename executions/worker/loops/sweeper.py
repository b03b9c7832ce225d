"""The sweeper: revokes what ended placements have left at far sides, by the ledger.

Timing: background-worker, in a thread with its own connection: a far side that does not answer must hold up nothing.
Model: sync. Guarantee: at-least-once; whatever died before, what was issued is revoked, and its record closed.
Failure: what cannot be revoked is tried again, later and later, and never forgotten.
"""

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from executions.models.sealing import unseal
from executions.placement.run_scope import run_scope
from executions.semantics.masking import Masker
from executions.transitions.ledger import Issued, due_for_sweep, mark_not_swept, mark_swept
from executions.worker.locks import advisory_lock
from executions.worker.loops.periodic import Periodic
from foundation.errors import IsolaneError
from foundation.logs import bound
from isolane.text import MESSAGE_MAX, storable
from resources.addresses import host_and_port, policy_from_settings, resolve
from resources.issuers.base import Ask, FarThing, IssueError, Issuer
from resources.issuers.registry import issuer_of
from resources.selectors import definitions
from resources.services import secrets
from tenants.scope import platform_scope
from tenants.selectors import schema_of

SWEEP_LOCK = 7_231_004
SILENT_SECONDS = 60  # far sides may take long
PLACE = ("host", "port", "dbname")  # of what it takes to revoke something
# A worker that was stopped in the middle of issuing may wake up later than this only if it was stopped for longer.
SECOND_LOOK_SECONDS = 600.0
logger = logging.getLogger(__name__)


class Sweeper(Periodic):
    """Runs until the worker stops."""

    def __init__(self, *, period: float) -> None:
        super().__init__("sweeper", period=period)

    def turn(self) -> None:
        """Revoke what is due, unless another worker is at it."""
        with advisory_lock(SWEEP_LOCK, silent_s=SILENT_SECONDS) as held:
            if held:
                sweep()


def sweep(seconds: float = math.inf) -> int:
    """Revoke what ended placements have left, for so long; returns how many were looked at."""
    until = time.monotonic() + seconds
    with platform_scope():
        rows = due_for_sweep()
    silent: set[tuple[int, str]] = set()  # whose far side did not answer in this turn
    for number, row in enumerate(rows):
        if time.monotonic() >= until:
            return number
        if (row.tenant_id, row.definition) not in silent and not _sweep(row):
            silent.add((row.tenant_id, row.definition))
    return len(rows)


def _sweep(row: Issued) -> bool:
    """Whether it was revoked."""
    told = {
        "execution_id": str(row.execution_id),
        "tenant_id": schema_of(row.tenant_id),
        "epoch": row.epoch,
        "resource_type": row.kind,
        "resource_id": row.far_id,
    }
    with bound(told):
        reason = _reason_not_revoked(row)
        with run_scope(row.tenant_id):
            if reason:
                mark_not_swept(row, reason)
            else:
                mark_swept(row, again_s=SECOND_LOOK_SECONDS)
        if reason:
            logger.warning("not swept: %s", reason, extra={"event": "RESOURCE_FAILED"})
        elif not row.swept:
            logger.info("resource swept", extra={"event": "RESOURCE_SWEPT"})
    return not reason


def _reason_not_revoked(row: Issued) -> str:
    """Revoke it; why that failed, in few words, if it did."""
    data: Mapping[str, Any] = {}
    try:
        data = unseal(row.execution_id, bytes(row.data))
        _revoke(row, data)
    except (IssueError, IsolaneError) as error:
        # A far side may repeat what it was told.
        masker = Masker()
        masker.learn_secrets(value for value in data.values() if isinstance(value, str))
        return storable(masker.mask(str(error)), MESSAGE_MAX)
    except Exception as error:
        # Issuers and resolvers may be of others; what one gets wrong must not stop the sweeping of all tenants.
        logger.exception("not swept", extra={"event": "RESOURCE_FAILED"})
        return type(error).__name__
    return ""


def _revoke(row: Issued, data: Mapping[str, Any]) -> None:
    """With the credentials that it was issued with or, if these are no longer good, with today's."""
    issuer = issuer_of(row.resource_type)
    if issuer is None:
        raise IssueError(f"this worker has no issuer for {row.resource_type!r}")
    try:
        issuer.revoke(FarThing(kind=row.kind, far_id=row.far_id, data=data))
    except IssueError:
        again = _as_defined_today(row, issuer)
        # At another place there is nothing to revoke, which would look as if it had been done.
        if again is None or again.data == data or _place(again.data) != _place(data):
            raise
        issuer.revoke(again)


def _place(data: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(data.get(name) for name in PLACE)


def _as_defined_today(row: Issued, issuer: Issuer) -> FarThing | None:
    tenant = schema_of(row.tenant_id)
    with run_scope(row.tenant_id):
        defined = definitions({row.definition}).get(row.definition)
        if defined is None or defined.type != row.resource_type:
            return None
        values = secrets.resolve(tenant, defined.secrets, defined.sealed)
    place = host_and_port(defined.type, defined.config)
    ask = Ask(
        tenant=tenant,
        execution_id=row.execution_id,
        epoch=row.epoch,
        name=row.definition,
        type=defined.type,
        definition=row.definition,
        scope=defined.scope,
        eager=False,
        config=defined.config,
        secrets=values,
        address=resolve(*place, policy_from_settings()) if place else "",
        seconds_left=0.0,
    )
    return next((thing for thing in issuer.things(ask) if thing.far_id == row.far_id), None)
