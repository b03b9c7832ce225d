"""Workers and waiting runs of all tenants; to read only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from executions.placement.models import Ticket, Worker


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """The platform writes these rows; people look."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """No."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No."""
        return False


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Who serves the queue."""

    list_display = ("node_name", "capacity", "started_at", "lease_until", "draining", "reachable")


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    """What waits and what runs, by id only."""

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
