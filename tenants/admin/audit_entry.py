"""Who did what; to read only."""

from django.contrib import admin
from django.http import HttpRequest

from tenants.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin[AuditEntry]):
    """Nobody adds, changes or removes an entry here."""

    list_display = ("at", "tenant_schema", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("tenant_schema", "actor", "subject")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Entries are written by services."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """The past does not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Nor is it forgotten."""
        return False
