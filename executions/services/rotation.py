"""Rotate the sealed values of all tenants to the newest key.

Timing: request-time, from a command.
Model: sync; one tenant after the other.
Guarantee: idempotent, as resources.services.rotation.
Failure: bubble, except for a tenant that is dropped meanwhile; a second run continues.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.models import Model

from executions.models import Execution, Step
from foundation.errors import NotFound
from resources.ledger.models import IssuedCredential
from resources.models import Secret
from resources.services.rotation import Rotated, rotate_column
from tenants.scope import TenantRef, login_scope, platform_scope, tenant_scope
from tenants.selectors import all_tenants, tenant_by_schema
from tenants.services.audit import record
from tenants.statuses import TenantStatus

# Every column that the key ring writes: in the tables of a tenant, and in the shared table with its rows.
SEALED: tuple[tuple[type[Model], str], ...] = (
    (Secret, "sealed"),
    (Execution, "sealed_inputs"),
    (Execution, "sealed_variables"),
    (Step, "sealed_output"),
    (IssuedCredential, "data"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RotationProgress:
    """The result of one tenant, and the progress of the rotation."""

    tenant: str
    result: Rotated
    done: int
    total: int


def rotate(*, actor: str) -> Iterator[RotationProgress]:
    """Rotate the sealed values of every tenant, also of suspended ones; yield after each tenant."""
    with platform_scope():
        with_schema = [one for one in all_tenants() if one.status in TenantStatus.any()]
        tenants = [tenant.ref for tenant in with_schema]
    for number, tenant in enumerate(tenants, start=1):
        result = _rotate_tenant(tenant, actor)
        yield RotationProgress(tenant=tenant.schema, result=result, done=number, total=len(tenants))


def _rotate_tenant(tenant: TenantRef, actor: str) -> Rotated:
    try:
        with tenant_scope(tenant, allowed=TenantStatus.any()):
            result = sum((rotate_column(model, column) for model, column in SEALED), Rotated())
            record(
                action="secret.rotate",
                actor=actor,
                tenant=tenant,
                rotated=result.rotated,
                changed=result.changed,
                unreadable=result.unreadable,
            )
    except DatabaseError:
        if not _is_gone(tenant):
            raise
        return Rotated()
    return result


def _is_gone(tenant: TenantRef) -> bool:
    try:
        with login_scope():
            return tenant_by_schema(tenant.schema).id != tenant.id
    except NotFound:
        return True
