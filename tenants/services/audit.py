"""Writing the audit trail."""

from typing import Any

from tenants.models import AuditEntry
from tenants.scope import TenantRef


def record(
    *,
    action: str,
    actor: str,
    tenant: TenantRef | None = None,
    subject: str = "",
    using: str = "default",
    **details: Any,
) -> None:
    """Append one entry, in the caller's transaction and scope."""
    AuditEntry.objects.using(using).create(
        action=action,
        actor=actor,
        subject=subject,
        details=details,
        tenant_id=tenant.id if tenant else None,
        tenant_schema=tenant.schema if tenant else "",
    )
