"""Tables in public: the tenants and those who may act for them."""

from tenants.models.api_key import ApiKey
from tenants.models.audit_entry import AuditEntry
from tenants.models.domain import Domain
from tenants.models.former_tenant import FormerTenant
from tenants.models.membership import Membership
from tenants.models.quota import Quota
from tenants.models.tenant import Tenant
from tenants.models.user import User

__all__ = [
    "ApiKey",
    "AuditEntry",
    "Domain",
    "FormerTenant",
    "Membership",
    "Quota",
    "Tenant",
    "User",
]
