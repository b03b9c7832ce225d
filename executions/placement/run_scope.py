"""The scope of a run: its tenant, entered by links, closes and the worker's loops."""

from tenants.scope import Entered, TenantRef, tenant_scope
from tenants.selectors import schema_of
from tenants.statuses import TenantStatus

ANY_STATUS = TenantStatus.any()


def run_scope(tenant_id: int) -> Entered:
    """Enter the tenant of a run, whatever the tenant's status, without reading it: a run that has begun may end.

    The fence decides whether a placement may still write; a tenant that does not exist raises.
    """
    tenant = TenantRef(id=tenant_id, schema=schema_of(tenant_id), status=TenantStatus.ACTIVE)
    return tenant_scope(tenant, allowed=ANY_STATUS)
