"""The levels and limits of a tenant's runs over HTTP, each tenant for itself."""

from uuid import uuid4

import pytest

from executions.placement.registry import register, store_catalogue
from isolane.protocol import NodeCatalogue
from tenants.models import Quota, Tenant
from tenants.scope import TenantRef, platform_scope
from tests.integration.tenants.web import problem, program, visitor

LEVELS = "/api/v1/levels"


@pytest.fixture
def offered(acme: TenantRef, globex: TenantRef) -> None:
    """Two workers, of which one cannot build sandboxes."""
    with platform_scope():
        catalogue = store_catalogue(NodeCatalogue(nodes=(), packages={}, python="3"))
        for levels in (["shared"], ["process", "shared"]):
            register(
                boot=uuid4(),
                node_name=f"{levels[0]}@host",
                lane=levels[0],
                capacity=1,
                levels=levels,
                catalogue=catalogue,
            )


@pytest.mark.usefixtures("offered")
def test_each_tenant_sees_its_own_level_and_limits(acme: TenantRef, globex: TenantRef) -> None:
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(trusted=False)
        Tenant.objects.filter(pk=globex.id).update(trusted=True)
        Quota.objects.filter(tenant=acme.id).update(ram_mb=128, connections=2, max_run_minutes=5)
    own = program(acme).get(LEVELS).json()
    assert own["offered"] == ["shared", "process"]
    assert (own["level"], own["limits"]["ram_mb"], own["max_run_minutes"]) == ("process", 128, 5)
    assert own["limits"]["connections"] == 2
    assert own["reason"] == "the tenant is not trusted, and shared is for trusted tenants"
    other = program(globex).get(LEVELS).json()
    assert (other["level"], other["limits"]["ram_mb"], other["max_run_minutes"]) == (
        "shared",
        512,
        None,
    )
    assert set(own["limits"]) == {
        "cpu",
        "ram_mb",
        "processes",
        "disk_mb",
        "open_files",
        "output_kb",
        "connections",
        "network_mb",
        "idle_seconds",
    }


def test_without_a_worker_nothing_is_offered(acme: TenantRef) -> None:
    found = program(acme).get(LEVELS).json()
    assert (found["offered"], found["level"]) == ([], "")
    assert "No worker has started yet" in found["reason"]


@pytest.mark.usefixtures("offered")
def test_a_tenant_whose_runs_would_be_refused_is_told_why(
    acme: TenantRef, globex: TenantRef
) -> None:
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(required_isolation="docker")
    found = program(acme).get(LEVELS).json()
    assert found["level"] == ""
    assert "needs isolation docker or stricter (the tenant requires it)" in found["reason"]
    assert "the workers offer process, shared." in found["reason"]
    other = program(globex).get(LEVELS).json()
    assert (other["level"], other["reason"]) == ("shared", "the tenant requires it")


def test_nobody_else_sees_them(acme: TenantRef) -> None:
    problem(visitor().get(LEVELS), 401, "not_authenticated")
