"""The admin page of the ledger: credentials at remote servers, of all tenants; read-only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from resources.ledger.models import IssuedCredential


@admin.register(IssuedCredential)
class IssuedCredentialAdmin(admin.ModelAdmin[IssuedCredential]):
    """Lists names only; failed revocations show their number of attempts."""

    list_display = (
        "remote_id",
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
        """Refuse: only the platform writes these rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False
