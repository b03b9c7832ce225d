"""The audit trail; read-only."""

from django.contrib import admin

from foundation.admin import ReadOnlyAdmin
from tenants.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Entries are written by services and never change."""

    list_display = ("at", "tenant_schema", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("tenant_schema", "actor", "subject")
