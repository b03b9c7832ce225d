"""The platform's admin: tenants, quotas, keys, members, the audit trail."""

from tenants.admin import api_key, audit_entry, membership, tenant, user

__all__ = ["api_key", "audit_entry", "membership", "tenant", "user"]
