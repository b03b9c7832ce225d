"""The admin of tenants, which also says at once which level their runs get."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from executions.explain.tenant_level import level_note
from tenants.admin.tenant import TenantAdmin
from tenants.models import Tenant

_DECIDING = frozenset({"trusted", "required_isolation"})


class TenantWithLevelAdmin(TenantAdmin):
    """Warns if no worker offers the level that a new or changed tenant needs."""

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Save it and tell the level."""
        super().save_model(request, obj, form, change)
        if not change or _DECIDING.intersection(form.changed_data):
            note = level_note(obj.schema_name)
            level = messages.WARNING if note.is_warning else messages.INFO
            self.message_user(request, note.text, level)


admin.site.unregister(Tenant)
admin.site.register(Tenant, TenantWithLevelAdmin)
