"""What exists at far sides for runs of all tenants; to read only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from resources.ledger.models import Issued


@admin.register(Issued)
class IssuedAdmin(admin.ModelAdmin[Issued]):
    """By id only; what could not be revoked comes up with the number of tries."""

    list_display = (
        "far_id",
        "kind",
        "tenant",
        "execution_id",
        "epoch",
        "issued_at",
        "sweeps",
        "swept",
    )
    list_filter = ("kind", "swept", "tenant")
    exclude = ("data",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The platform writes these rows; people look."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No."""
        return False
