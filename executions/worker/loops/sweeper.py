"""The sweeper: revokes the credentials that ended placements have left at remote servers, by the ledger.

Timing: background-worker, in a thread with its own connection, so that a silent server delays nothing.
Model: sync.
Guarantee: at-least-once; every issued credential is revoked, whatever died before, and its record closed.
Failure: a credential that cannot be revoked is tried again, later and later, and never forgotten.
"""

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from executions.models.sealing import unseal
from executions.placement.run_scope import run_scope
from executions.semantics.masking import Masker
from executions.transitions.ledger import due_for_sweep, mark_not_swept, mark_swept
from executions.worker.locks import advisory_lock
from executions.worker.loops.periodic import Periodic
from foundation.errors import IsolaneError
from foundation.logs import bound
from isolane.text import MESSAGE_MAX, storable
from resources.addresses import host_and_port, policy_from_settings, resolve
from resources.credentials import Credential, ResourceRequest
from resources.issuers.base import IssueError, Issuer
from resources.issuers.registry import issuer_of
from resources.ledger.models import IssuedCredential
from resources.selectors import definitions
from resources.services import secrets
from tenants.scope import platform_scope
from tenants.selectors import schema_of

SWEEP_LOCK = 7_231_004
SILENT_SECONDS = 60  # remote servers may take long
SERVER_FIELDS = ("host", "port", "dbname")  # that say in a credential's data where it exists
# A worker that was stopped in the middle of issuing may wake up later than this only if it was stopped for longer.
SECOND_LOOK_SECONDS = 600.0
logger = logging.getLogger(__name__)


class Sweeper(Periodic):
    """Runs until the worker stops."""

    def __init__(self, *, period: float) -> None:
        super().__init__("sweeper", period=period)

    def turn(self) -> None:
        """Revoke what is due, unless another worker is sweeping."""
        with advisory_lock(SWEEP_LOCK, silent_s=SILENT_SECONDS) as held:
            if held:
                sweep()


def sweep(seconds: float = math.inf) -> int:
    """Revoke due credentials for at most so many seconds; return how many rows were handled."""
    until = time.monotonic() + seconds
    with platform_scope():
        rows = due_for_sweep()
    silent: set[tuple[int, str]] = set()  # definitions whose server did not answer in this turn
    for number, row in enumerate(rows):
        if time.monotonic() >= until:
            return number
        if (row.tenant_id, row.definition) not in silent and not _sweep(row):
            silent.add((row.tenant_id, row.definition))
    return len(rows)


def _sweep(row: IssuedCredential) -> bool:
    """Revoke one credential and record the outcome; true if it was revoked."""
    ids = {
        "execution_id": str(row.execution_id),
        "tenant_id": schema_of(row.tenant_id),
        "epoch": row.epoch,
        "resource_type": row.kind,
        "resource_id": row.remote_id,
    }
    with bound(ids):
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


def _reason_not_revoked(row: IssuedCredential) -> str:
    """Revoke it; return why that failed, empty if it did not."""
    data: Mapping[str, Any] = {}
    try:
        data = unseal(row.execution_id, bytes(row.data))
        _revoke(row, data)
    except (IssueError, IsolaneError) as error:
        # A remote server may repeat the secrets that it was sent.
        masker = Masker()
        masker.learn_secrets(value for value in data.values() if isinstance(value, str))
        return storable(masker.mask(str(error)), MESSAGE_MAX)
    except Exception as error:
        # Issuers and resolvers may come from plugins; a fault in one must not stop the sweeping of all tenants.
        logger.exception("not swept", extra={"event": "RESOURCE_FAILED"})
        return type(error).__name__
    return ""


def _revoke(row: IssuedCredential, data: Mapping[str, Any]) -> None:
    """Revoke with the login that it was issued with or, if that no longer works, with the definition's present one."""
    issuer = issuer_of(row.resource_type)
    if issuer is None:
        raise IssueError(f"this worker has no issuer for {row.resource_type!r}")
    try:
        issuer.revoke(Credential(kind=row.kind, remote_id=row.remote_id, data=data))
    except IssueError:
        again = _as_defined_now(row, issuer)
        # On another server there is nothing to revoke, which would look like success.
        if again is None or again.data == data or _server(again.data) != _server(data):
            raise
        issuer.revoke(again)


def _server(data: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(data.get(name) for name in SERVER_FIELDS)


def _as_defined_now(row: IssuedCredential, issuer: Issuer) -> Credential | None:
    """Plan the same credential from the definition as it is now; None if it no longer fits."""
    tenant = schema_of(row.tenant_id)
    with run_scope(row.tenant_id):
        defined = definitions({row.definition}).get(row.definition)
        if defined is None or defined.type != row.resource_type:
            return None
        values = secrets.resolve(tenant, defined.secrets, defined.sealed)
    place = host_and_port(defined.type, defined.config)
    request = ResourceRequest(
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
    return next(
        (
            credential
            for credential in issuer.plan(request)
            if credential.remote_id == row.remote_id
        ),
        None,
    )
