"""Runs with a slot."""

from dataclasses import replace

import pytest

from executions.transitions.claim import claim_step
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_placed

WORKER = "w1@test"


@pytest.fixture
def placed(acme: TenantRef, boot: WorkerBoot) -> Placement:
    """A placed run of which nothing is claimed."""
    return replace(make_placed(acme, boot), worker=WORKER)


@pytest.fixture
def claimed(acme: TenantRef, placed: Placement) -> Placement:
    """A run whose first of two steps is claimed."""
    with tenant_scope(acme):
        claim_step(placed, "one", worker=WORKER)
    return placed
