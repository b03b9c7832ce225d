"""The platform's admin: tenants, quotas, keys, members, the audit trail."""

from django.contrib import admin

from tenants.admin import api_key, audit_entry, membership, tenant, user

admin.site.site_header = "Isolane"
admin.site.site_title = "Isolane"
admin.site.index_title = "The platform"

__all__ = ["api_key", "audit_entry", "membership", "tenant", "user"]
