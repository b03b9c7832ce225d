"""Being the tenant of a run: for links, closes and what the worker's loop does for a run."""

from tenants.scope import Entered, TenantRef, tenant_scope
from tenants.selectors import schema_of
from tenants.statuses import TenantStatus

ANY_STATUS = TenantStatus.any()


def run_scope(tenant_id: int) -> Entered:
    """Enter the tenant whatever its status, which is not even asked for: what was begun may end.

    The fence decides whether this placement may still write; a tenant that does not exist raises.
    """
    tenant = TenantRef(id=tenant_id, schema=schema_of(tenant_id), status=TenantStatus.ACTIVE)
    return tenant_scope(tenant, allowed=ANY_STATUS)
