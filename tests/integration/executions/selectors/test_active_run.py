"""A run is loaded with the limits of its own tenant, its blueprint and the platform."""

import pytest
from django.conf import settings

from executions.selectors.active_run import load_run
from executions.worker.boot import WorkerBoot
from isolane.limits import RunLimits
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tenants.services.tenants import update_tenant
from tests.factories import start


def limits_of(tenant: TenantRef, placement: Placement) -> RunLimits:
    with tenant_scope(tenant):
        run = load_run(tenant.id, placement.execution_id)
    assert run is not None
    return run.limits


def test_each_tenant_has_its_own_limits(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    update_tenant(
        schema="acme", limits={"ram_mb": 2048, "cpu": 0.25, "network_mb": 7}, actor="tests"
    )
    theirs_only = {"processes": 9, "max_run_minutes": 1, "connections": 6, "idle_seconds": 5}
    update_tenant(schema="globex", limits=theirs_only, actor="tests")
    asked = {"ram_mb": 1024, "output_kb": 3, "connections": 8}
    ours, theirs = (start(tenant, boot, {}, limits=asked) for tenant in (acme, globex))
    kept = {"disk_mb": 100, "open_files": 256, "output_kb": 3}
    assert limits_of(acme, ours) == RunLimits(
        cpu=0.25, ram_mb=1024, processes=64, connections=8, network_mb=7, idle_seconds=1800, **kept
    )
    assert limits_of(globex, theirs) == RunLimits(
        cpu=1, ram_mb=512, processes=9, connections=6, network_mb=4096, idle_seconds=5, **kept
    )


def test_the_platforms_defaults_are_those_of_its_settings(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = start(acme, boot, {})
    assert limits_of(acme, placement) == settings.RUN_LIMITS
    monkeypatch.setattr(settings, "RUN_LIMITS", RunLimits(ram_mb=77))
    assert limits_of(acme, placement) == RunLimits(ram_mb=77)
