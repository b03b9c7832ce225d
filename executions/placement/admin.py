"""Workers and waiting runs of all tenants; to read only."""

from django.contrib import admin

from executions.placement.models import Ticket, Worker
from foundation.admin import ReadOnlyAdmin


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Boots of workers: capacity, lease and state."""

    list_display = ("node_name", "capacity", "started_at", "lease_until", "draining", "reachable")


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    """Waiting and placed runs, by id only."""

    list_display = (
        "execution_id",
        "tenant",
        "state",
        "worker",
        "epoch",
        "cancel_requested",
        "waiting_since",
    )
    list_filter = ("state", "tenant")
