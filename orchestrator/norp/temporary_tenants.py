"""Temporary tenants, for the length of a test.

Timing: request-time.
Model: sync.
Guarantee: at-least-once; marked for deletion first: workers and provisioners finish if this terminal stops.
Failure: bubble; one that is not deleted in time is named.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from executions.services.offboarding import advance_deletion
from foundation.errors import Unavailable
from tenants.isolation import Isolation, default_requirement
from tenants.scope import TenantRef
from tenants.services.tenants import create_tenant, set_status, update_tenant
from tenants.statuses import TenantStatus
from tenants.waiting import NoProvisioner, wait_until_active, wait_until_gone

PREFIX = "norp_"
GONE_SECONDS = 30.0


@contextmanager
def temporary_tenant(*, actor: str, say: Callable[[str], None]) -> Iterator[TenantRef]:
    """Create a trusted tenant with a random name; delete it with all its data, however the block ends."""
    schema = f"{PREFIX}{secrets.token_hex(4)}"
    create_tenant(schema=schema, name="NORP-006 tests", trusted=True, actor=actor)
    is_dropped_soon = True
    try:
        yield wait_until_active(schema)
    except NoProvisioner:
        is_dropped_soon = False
        raise
    finally:
        set_status(schema=schema, status=TenantStatus.DELETING, actor=actor)
        if is_dropped_soon:
            _wait_until_gone(schema, say)


def trust_for(level: Isolation, tenants: Iterable[TenantRef], *, actor: str) -> None:
    """Trust these tenants where the level is for trusted ones only; else let them be ordinary ones."""
    for tenant in tenants:
        trusted = level is Isolation.SHARED
        update_tenant(
            schema=tenant.schema,
            trusted=trusted,
            required_isolation=default_requirement(trusted=trusted),
            actor=actor,
        )


def _wait_until_gone(schema: str, say: Callable[[str], None]) -> None:
    try:
        wait_until_gone(schema, advance_deletion, seconds=GONE_SECONDS)
    except Unavailable as error:
        say(f"{error.detail} See 'isolane tenants list'.")
