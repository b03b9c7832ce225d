"""Stop the runs of tenants that are being deleted; a provisioner drops the schema afterwards."""

from executions.placement.models import Ticket
from executions.states import TicketState
from resources.ledger.models import IssuedCredential
from tenants.failures import note_failure
from tenants.scope import TenantRef, platform_scope
from tenants.selectors import tenants_being_deleted
from tenants.services.tenants import hand_to_provisioner
from tenants.statuses import TenantStatus


def advance_deletions() -> None:
    """Advance every deletion of a tenant; one that fails does not delay the others."""
    with platform_scope():
        tenants = tenants_being_deleted()
    for tenant in tenants:
        try:
            advance_deletion(tenant)
        except Exception as error:  # noqa: BLE001 - kept on its row, logged, and tried again later
            with platform_scope():
                status = TenantStatus.DELETING
                note_failure(tenant.id, error, status=status, doing="stopping the runs of")


def advance_deletion(tenant: TenantRef) -> bool:
    """Stop its runs; return True once none holds a slot or credential and the tenant is handed to a provisioner."""
    with platform_scope():
        tickets = Ticket.objects.filter(tenant_id=tenant.id)
        tickets.filter(state=TicketState.PLACED).update(cancel_requested=True)
        # Their executions are dropped with the schema.
        tickets.exclude(state=TicketState.PLACED).delete()
        # Credentials of its runs are revoked first: without the tenant, nothing would know of them.
        issued = IssuedCredential.objects.filter(tenant_id=tenant.id)
        if tickets.exists() or issued.filter(swept=False).exists():
            return False
        issued.delete()
        hand_to_provisioner(tenant)
    return True
