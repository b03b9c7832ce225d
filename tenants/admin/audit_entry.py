"""Admin of the audit trail; read-only."""

from django.contrib import admin
from django.http import HttpRequest

from tenants.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin[AuditEntry]):
    """Audit entries; they are never added, changed or removed here."""

    list_display = ("at", "tenant_schema", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("tenant_schema", "actor", "subject")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: services write entries."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Refuse: entries never change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Refuse: entries are kept."""
        return False
