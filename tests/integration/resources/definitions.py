"""Definitions and secrets that tests start from."""

from typing import Any

from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.models import AuditEntry
from tenants.scope import TenantRef, platform_scope

VALUE = "hunter2-hunter2"
DATABASE = {"host": "db.example.com", "dbname": "billing", "user": "reader"}


def wanted(name: str = "billing-db", **changes: Any) -> DefinitionInput:
    """A database, with a stored secret unless said otherwise."""
    fields = {"type": "database", "config": DATABASE, "secrets": {"password": "billing"}}
    return DefinitionInput(name=name, **{**fields, **changes})


def define(tenant: TenantRef, name: str = "billing-db", **changes: Any) -> None:
    """A definition with its secret."""
    put_secret(tenant, "billing", VALUE, actor="tests")
    create_definition(tenant, wanted(name, **changes), actor="tests")


def audited(tenant: TenantRef) -> list[tuple[str, str, str]]:
    """Return the audit entries of the tenant's resources and secrets, the oldest first."""
    with platform_scope():
        found = AuditEntry.objects.filter(tenant_id=tenant.id).order_by("id")
        return [
            (entry.action, entry.subject, entry.actor)
            for entry in found
            if entry.action.startswith(("resource.", "secret."))
        ]
