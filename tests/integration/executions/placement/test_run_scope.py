"""Being the tenant of a run: a suspended or leaving tenant's runs may end, one that never was is refused."""

import pytest

from executions.models import Execution
from executions.placement.run_scope import run_scope
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from foundation.errors import NotFound
from tenants.scope import TenantNotActive, TenantRef, tenant_scope
from tenants.selectors import tenant_by_schema
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import make_placed

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.mark.parametrize("status", [TenantStatus.SUSPENDED, TenantStatus.DELETING])
def test_what_was_begun_may_end(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, status: TenantStatus
) -> None:
    placement = make_placed(acme, boot)
    links.begin("one", placement, "one")
    set_status(schema="acme", status=status, actor="tests")
    with pytest.raises(TenantNotActive), tenant_scope(tenant_by_schema("acme")):
        pytest.fail("entered")
    links.run("one", "one", [])
    links.end("one")
    links.begin("two", placement, "two")
    links.run("two", "two", [])
    links.end("two")
    with run_scope(acme.id):
        assert Execution.objects.get(pk=placement.execution_id).state == ExecutionState.SUCCEEDED


def test_a_tenant_that_does_not_exist_is_refused(acme: TenantRef) -> None:
    with pytest.raises(NotFound), run_scope(999_999):
        pytest.fail("entered")
