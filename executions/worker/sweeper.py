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

from executions.scope import run_scope
from executions.sealing import unseal
from executions.transitions.ledger import Issued, due_for_sweep, mark_not_swept, mark_swept
from executions.worker.locks import advisory_lock
from executions.worker.periodic import Periodic
from orchestrator.core.errors import IsolaneError
from resources.addresses import host_and_port, policy_from_settings, resolve
from resources.issuers.base import Ask, FarThing, IssueError, Issuer
from resources.issuers.registry import issuer_of
from resources.selectors import definitions
from resources.services import secrets
from tenants.scope import platform_scope
from tenants.selectors import schema_of

SWEEP_LOCK = 7_231_004
# A worker that was stopped in the middle of issuing may wake up later than this only if it was stopped for longer.
SECOND_LOOK_SECONDS = 600.0
logger = logging.getLogger(__name__)


class Sweeper(Periodic):
    """Runs until the worker stops."""

    def __init__(self) -> None:
        super().__init__("sweeper")

    def turn(self) -> None:
        """Revoke what is due, unless another worker is at it."""
        with advisory_lock(SWEEP_LOCK) as held:
            if held:
                sweep()


def sweep(seconds: float = math.inf) -> int:
    """Revoke what ended placements have left, for so long; returns how many were looked at."""
    until = time.monotonic() + seconds
    with platform_scope():
        rows = due_for_sweep()
    for number, row in enumerate(rows):
        if time.monotonic() >= until:
            return number
        _sweep(row)
    return len(rows)


def _sweep(row: Issued) -> None:
    told = {
        "execution_id": str(row.execution_id),
        "tenant_id": schema_of(row.tenant_id),
        "epoch": row.epoch,
        "resource_type": row.kind,
        "resource_id": row.far_id,
    }
    try:
        _revoke(row)
    except (IssueError, IsolaneError) as error:
        with run_scope(row.tenant_id):
            mark_not_swept(row.id, str(error))
        logger.warning("not swept: %s", error, extra={"event": "RESOURCE_FAILED", **told})
        return
    with run_scope(row.tenant_id):
        mark_swept(row.id, again_s=SECOND_LOOK_SECONDS)
    if not row.swept:
        logger.info("resource swept", extra={"event": "RESOURCE_SWEPT", **told})


def _revoke(row: Issued) -> None:
    """With the credentials that it was issued with or, if these are no longer good, with today's."""
    issuer = issuer_of(row.resource_type)
    if issuer is None:
        raise IssueError(f"this worker has no issuer for {row.resource_type!r}")
    data: Mapping[str, Any] = unseal(row.execution_id, bytes(row.data))
    try:
        issuer.revoke(FarThing(kind=row.kind, far_id=row.far_id, data=data))
    except IssueError:
        again = _as_defined_today(row, issuer)
        if again is None or again.data == data:
            raise
        issuer.revoke(again)


def _as_defined_today(row: Issued, issuer: Issuer) -> FarThing | None:
    tenant = schema_of(row.tenant_id)
    with run_scope(row.tenant_id):
        defined = definitions({row.definition}).get(row.definition)
        if defined is None or defined.type != row.resource_type:
            return None
        values = secrets.resolve(tenant, defined.secrets)
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
