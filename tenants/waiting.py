"""Waiting in commands until a provisioner has created or dropped a tenant.

Timing: request-time, from a command.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: abort; the creation or deletion goes on without it.
"""

import time
from collections.abc import Callable

from foundation.errors import Conflict, NotFound, Unavailable
from tenants.models import Tenant
from tenants.scope import TenantRef, login_scope
from tenants.statuses import TenantStatus

MADE_SECONDS = 15.0
POLL_SECONDS = 0.1


class NotMade(Conflict):
    """A provisioner could not create the tenant."""

    code = "tenant_not_made"


class NoProvisioner(Unavailable):
    """No provisioner has acted on the tenant."""

    code = "no_provisioner"


def wait_until_active(schema: str, *, seconds: float = MADE_SECONDS) -> TenantRef:
    """Return the tenant once it accepts work; raise its provisioning error, or that no provisioner seems to run."""
    deadline = time.monotonic() + seconds
    while True:
        tenant = _row(schema)
        if tenant is None:
            raise NotFound(f"Tenant {schema!r} was deleted before it was created.", field="schema")
        if tenant.status != TenantStatus.CREATING:
            ref: TenantRef = tenant.ref
            return ref
        if tenant.provisioning_error:
            raise NotMade(
                f"Tenant {schema!r} is not created yet: {tenant.provisioning_error} It is tried again; to "
                f"give up: 'isolane tenants delete {schema}'."
            )
        if time.monotonic() > deadline:
            raise NoProvisioner(
                f"Tenant {schema!r} is still being created after {seconds:g} s: no provisioner seems to run. Start "
                "one with 'isolane provisioner'; the creation goes on when one runs."
            )
        time.sleep(POLL_SECONDS)


def wait_until_gone(schema: str, advance: Callable[[TenantRef], object], *, seconds: float) -> None:
    """Advance the tenant's deletion until it is gone; raise the reason if it is not in time."""
    deadline = time.monotonic() + seconds
    while (tenant := _row(schema)) is not None:
        if tenant.status == TenantStatus.DELETING:
            advance(tenant.ref)
        if time.monotonic() > deadline:
            raise Unavailable(
                f"Tenant {schema!r} is not gone after {seconds:g} s: {_obstacle(tenant)}. Its deletion goes on."
            )
        time.sleep(POLL_SECONDS)


def _obstacle(tenant: Tenant) -> str:
    if tenant.provisioning_error:
        return str(tenant.provisioning_error).rstrip(".")
    if tenant.status == TenantStatus.DELETING:
        return "it still has runs, or credentials that are not revoked"
    return "no provisioner seems to run ('isolane provisioner')"


def _row(schema: str) -> Tenant | None:
    with login_scope():
        found: Tenant | None = Tenant.objects.filter(schema_name=schema).first()
    return found
