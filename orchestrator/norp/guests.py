"""Tenants for the length of a test.

Timing: request-time. Model: sync. Guarantee: at-least-once; it is marked for deletion first, so that workers which have
the owner's rights go on where this terminal stops. Failure: bubble; one that is not gone in time is named.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from executions.services.offboarding import advance_deletion
from tenants.scope import TenantRef
from tenants.services.tenants import create_tenant, set_status
from tenants.statuses import TenantStatus

PREFIX = "norp_"
GONE_SECONDS = 30.0
POLL_SECONDS = 0.2


@contextmanager
def temporary_tenant(*, actor: str, say: Callable[[str], None]) -> Iterator[TenantRef]:
    """A trusted tenant with a name of its own; deleted with all it has, however the block ends."""
    schema = f"{PREFIX}{secrets.token_hex(4)}"
    tenant = create_tenant(schema=schema, name="NORP-006 tests", trusted=True, actor=actor)
    try:
        yield tenant
    finally:
        set_status(schema=schema, status=TenantStatus.DELETING, actor=actor)
        if not _is_gone(tenant):
            say(f"Tenant {schema} still has runs; its deletion goes on ('isolane tenants list').")


def _is_gone(tenant: TenantRef) -> bool:
    deadline = time.monotonic() + GONE_SECONDS
    while not advance_deletion(tenant):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
