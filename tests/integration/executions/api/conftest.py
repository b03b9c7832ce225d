"""Two tenants that can submit runs; no worker runs them."""

import pytest
import redis

from tenants.scope import TenantRef
from tests.integration.executions.api.runs import offer_nodes, publish_order


@pytest.fixture
def order(broker: "redis.Redis", acme: TenantRef, globex: TenantRef) -> str:
    """A blueprint of both tenants; the version of the catalogue that its runs are bound to."""
    version = offer_nodes()
    publish_order(acme, globex)
    return version
