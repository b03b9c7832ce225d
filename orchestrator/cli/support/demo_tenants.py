"""The tenants of the demo: ordinary ones, whose runs have the level `process`. Needs the stack's settings.

Timing: within `isolane demo`.
Model: sync, in the main thread.
Guarantee: idempotent; tenants of an earlier demo are used again, and those of somebody else keep their trust.
Failure: bubble.
"""

from collections.abc import Iterable

from orchestrator.cli.support.demo_resources import ACTOR
from orchestrator.cli.support.process_level import report_process_level
from tenants.isolation import default_requirement
from tenants.models import AuditEntry
from tenants.scope import TenantRef, platform_scope
from tenants.services.tenants import TenantExists, create_tenant, update_tenant
from tenants.waiting import wait_until_active

TENANTS = ("acme", "globex", "initech")


def prepare_tenants(workers: Iterable[str]) -> list[TenantRef]:
    """Create the tenants; where these workers do not offer `process`, say so and trust them, so that they can run."""
    is_offered = report_process_level(
        workers,
        "The tenants of this demo are marked as trusted instead, so their runs have the level shared.",
    )
    return [_prepare(schema, trusted=not is_offered) for schema in TENANTS]


def _prepare(schema: str, *, trusted: bool) -> TenantRef:
    try:
        create_tenant(schema=schema, trusted=trusted, actor=ACTOR)
    except TenantExists:
        if _is_own(schema):
            required = default_requirement(trusted=trusted)
            update_tenant(schema=schema, trusted=trusted, required_isolation=required, actor=ACTOR)
    return wait_until_active(schema)


def _is_own(schema: str) -> bool:
    """Return True if a demo has created the tenant."""
    with platform_scope():
        made = AuditEntry.objects.filter(action="tenant.create", tenant_schema=schema).first()
    return made is not None and made.actor == ACTOR
