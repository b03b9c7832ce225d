"""Wake runs that wait for a time, and expire questions whose time is over.

Timing: background-worker, in the tick.
Model: sync.
Guarantee: at-least-once; the statement that queues a run deletes its wake-up, which thus happens once.
Failure: a run that cannot be woken is logged and tried again a minute later.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import OperationalError
from django.db.models.functions import Now

from executions.placement.models import Due, DueKind
from executions.placement.run_scope import run_scope
from executions.services.approvals import expire
from executions.transitions.wake import wake
from foundation.errors import NotFound
from tenants.scope import platform_scope
from tenants.selectors import schema_of

BATCH = 200
AGAIN = timedelta(minutes=1)
logger = logging.getLogger(__name__)


def wake_due() -> int:
    """Wake and expire one batch of what is due; return its size."""
    with platform_scope():
        due = Due.objects.filter(at__lte=Now()).order_by("at")
        found = list(due.values_list("kind", "tenant_id", "ref")[:BATCH])
    for kind, tenant_id, execution_id in found:
        _wake_alone(kind, tenant_id, execution_id)
    return len(found)


def _wake_alone(kind: str, tenant_id: int, execution_id: UUID) -> None:
    """Wake one run; if it cannot be woken, it is postponed, and the others are woken nevertheless."""
    try:
        _wake(kind, tenant_id, execution_id)
    except OperationalError:
        raise
    except Exception:
        whose = {"execution_id": str(execution_id), "tenant_id": _tenant(tenant_id)}
        logger.exception("not woken", extra={"event": "NOT_WOKEN", **whose})
        # Behind the others: else many such runs could fill every batch.
        with platform_scope():
            Due.objects.filter(kind=kind, ref=execution_id).update(at=Now() + AGAIN)


def _wake(kind: str, tenant_id: int, execution_id: UUID) -> None:
    with run_scope(tenant_id):
        if kind == DueKind.APPROVAL:
            expire(tenant_id, execution_id)
        else:
            wake(execution_id)


def _tenant(tenant_id: int) -> str:
    try:
        return schema_of(tenant_id)
    except NotFound:  # deleted meanwhile, perhaps the cause
        return ""
