"""Give up a credential that cannot be revoked: its server is gone for good, or our login was withdrawn.

Timing: request-time.
Model: sync.
Guarantee: exactly-once; it leaves the ledger, record and audit name the actor.
Failure: bubble, as an IsolaneError with code and field.
"""

from django.db import transaction

from executions.transitions.ledger import abandon
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope
from tenants.services.audit import record
from tenants.statuses import TenantStatus


def abandon_leftover(tenant: TenantRef, resource_id: str, *, actor: str) -> None:
    """Stop trying to revoke a credential; if it still exists at the remote server, the customer has to remove it."""
    with tenant_scope(tenant, allowed=TenantStatus.any()), transaction.atomic():
        if not abandon(resource_id, actor=actor):
            raise NotFound(
                f"No run of {tenant.schema!r} that has ended left {resource_id!r};"
                " 'isolane executions unclean' lists what is left.",
                field="resource_id",
            )
        record(action="resource.abandon", tenant=tenant, actor=actor, subject=resource_id)
