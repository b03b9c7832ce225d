"""A runtime is started with the limits that its run has at that moment."""

import pytest

from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.limits import RunLimits
from resources.placement import Placement
from tenants.scope import TenantRef
from tenants.services.tenants import update_tenant
from tests.factories import backend_of, start
from tests.integration.executions.worker.driving import drive, run_link

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


def limits_given(boot: WorkerBoot, placement: Placement) -> list[RunLimits]:
    return [
        runtime.limits
        for runtime in backend_of(boot).runtimes
        if runtime.placement.execution_id == placement.execution_id
    ]


def test_a_runtime_gets_the_stricter_of_tenant_and_blueprint(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    update_tenant(schema="acme", limits={"ram_mb": 128, "cpu": 4}, actor="tests")
    placement = start(acme, boot, {}, {}, limits={"ram_mb": 256, "cpu": 2})
    assert drive(acme, links, placement).state == "succeeded"
    (limits,) = limits_given(boot, placement)
    assert (limits.ram_mb, limits.cpu, limits.processes) == (128, 2, 64)


def test_a_changed_quota_counts_from_the_next_context_on(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    first = start(acme, boot, {}, {})
    run_link(links, first, "s1")
    update_tenant(schema="acme", limits={"ram_mb": 128}, actor="tests")
    drive(acme, links, first)
    second = start(acme, boot, {})
    drive(acme, links, second)
    assert [limits.ram_mb for limits in limits_given(boot, first)] == [512]
    assert [limits.ram_mb for limits in limits_given(boot, second)] == [128]
