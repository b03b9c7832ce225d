"""Waking what waits for a time.

Timing: background-worker, in the tick. Model: sync. Guarantee: at-least-once; a wake-up happens once, since it deletes
its row in the statement that queues the run. Failure: what cannot be woken is logged and stays due.
"""

import logging
from uuid import UUID

from django.db import OperationalError
from django.db.models.functions import Now

from executions.placement.models import Due, DueKind
from executions.scope import run_scope
from executions.transitions.waiting import wake
from tenants.scope import platform_scope

BATCH = 200
logger = logging.getLogger(__name__)


def wake_due() -> int:
    """Wake the runs whose time has come; returns how many."""
    with platform_scope():
        due = Due.objects.filter(kind=DueKind.WAKE, at__lte=Now()).order_by("at")
        found = list(due.values_list("tenant_id", "ref")[:BATCH])
    for tenant_id, execution_id in found:
        _wake_alone(tenant_id, execution_id)
    return len(found)


def _wake_alone(tenant_id: int, execution_id: UUID) -> None:
    """One that cannot be woken must not keep the others asleep."""
    try:
        with run_scope(tenant_id):
            wake(execution_id)
    except OperationalError:
        raise
    except Exception:
        logger.exception(
            "not woken", extra={"event": "NOT_WOKEN", "execution_id": str(execution_id)}
        )
