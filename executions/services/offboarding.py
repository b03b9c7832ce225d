"""Deleting a tenant, step by step: its runs are stopped, then its data is dropped."""

from executions.placement.models import Ticket
from executions.states import TicketState
from resources.ledger.models import Issued
from tenants.provisioning import has_owner
from tenants.scope import TenantRef, platform_scope
from tenants.selectors import tenants_being_deleted
from tenants.services.tenants import purge_tenant


def advance_deletions() -> None:
    """Go on with every tenant that is being deleted; needs a process that was given the owner's URL."""
    with platform_scope():
        tenants = tenants_being_deleted()
    for tenant in tenants:
        advance_deletion(tenant)


def advance_deletion(tenant: TenantRef) -> bool:
    """Stop its runs and, once none holds a slot or a credential, drop it; true when it is gone."""
    with platform_scope():
        tickets = Ticket.objects.filter(tenant_id=tenant.id)
        tickets.filter(state=TicketState.PLACED).update(cancel_requested=True)
        # Their executions go with the schema.
        tickets.exclude(state=TicketState.PLACED).delete()
        # What was issued to its runs is revoked first: with the tenant, nobody would know of it.
        issued = Issued.objects.filter(tenant_id=tenant.id)
        if tickets.exists() or issued.filter(swept=False).exists():
            return False
        issued.delete()
    if not has_owner():
        return False
    purge_tenant(tenant)
    return True
