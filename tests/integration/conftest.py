"""Fixtures of tests that use the database or the broker."""

import pytest

from tenants.scope import TenantRef


@pytest.fixture
def acme(database: None) -> TenantRef:
    """A tenant."""
    from tenants.selectors import tenant_by_schema

    return tenant_by_schema("acme")


@pytest.fixture
def globex(database: None) -> TenantRef:
    """Another tenant, which must never notice the first."""
    from tenants.selectors import tenant_by_schema

    return tenant_by_schema("globex")
