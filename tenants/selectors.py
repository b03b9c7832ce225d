"""Reading tenants."""

from functools import lru_cache

from foundation.errors import NotFound
from tenants.failures import due
from tenants.models import Domain, Membership, Tenant
from tenants.scope import TenantRef, platform_scope
from tenants.statuses import TenantStatus


def tenant_by_schema(schema: str) -> TenantRef:
    """Find a tenant by its name."""
    tenant = Tenant.objects.filter(schema_name=schema).first()
    if tenant is None:
        raise NotFound(
            f"There is no tenant {schema!r}; 'isolane tenants list' shows them.", field="tenant"
        )
    return _ref(tenant)


def tenant_by_host(host: str) -> TenantRef | None:
    """Find the tenant of a host name."""
    domain = Domain.objects.select_related("tenant").filter(domain=host.lower()).first()
    return _ref(domain.tenant) if domain else None


@lru_cache(maxsize=10_000)
def schema_of(tenant_id: int) -> str:
    """Return a tenant's schema. Cached: it never changes, and ids are never reused."""
    with platform_scope():
        schema = Tenant.objects.filter(pk=tenant_id).values_list("schema_name", flat=True).first()
    if schema is None:
        raise NotFound(f"There is no tenant with id {tenant_id}.", field="tenant")
    return str(schema)


def tenants_being_deleted() -> list[TenantRef]:
    """Return the tenants whose runs are to be stopped now."""
    found = Tenant.objects.filter(due(), status=TenantStatus.DELETING)
    return [_ref(tenant) for tenant in found.order_by("id")]


def all_tenants() -> list[Tenant]:
    """Return every tenant with its quota and domains, for lists."""
    found = Tenant.objects.select_related("quota").prefetch_related("domains")
    return list(found.order_by("schema_name"))


def membership_of(user_id: int, tenant: TenantRef) -> Membership | None:
    """Return a person's membership in a tenant, if any."""
    return Membership.objects.filter(user_id=user_id, tenant_id=tenant.id).first()


def _ref(tenant: Tenant) -> TenantRef:
    ref: TenantRef = tenant.ref
    return ref
