"""Waking what waits for a time.

Timing: background-worker, in the tick. Model: sync. Guarantee: at-least-once; a wake-up happens once, since it deletes
its row in the statement that queues the run. Failure: bubble; what is due stays due.
"""

from django.db.models.functions import Now

from executions.placement.models import Due, DueKind
from executions.scope import run_scope
from executions.transitions.waiting import wake
from tenants.scope import platform_scope

BATCH = 200


def wake_due() -> int:
    """Wake the runs whose time has come; returns how many."""
    with platform_scope():
        due = Due.objects.filter(kind=DueKind.WAKE, at__lte=Now()).order_by("at")
        found = list(due.values_list("tenant_id", "ref")[:BATCH])
    for tenant_id, execution_id in found:
        with run_scope(tenant_id):
            wake(execution_id)
    return len(found)
