"""Runs whose first step asks a person."""

from collections.abc import Callable
from typing import Any

import pytest

from executions.models import Approval
from executions.semantics.approval_reply import ApprovalReply
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from resources.placement import Placement
from resources.runtimes.stub import succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_boot, run_of, start
from tests.integration.executions.worker.driving import asking, echo, run_link, script

YES = ApprovalReply(approved=True, by="user:ann", comment="fine")
NO = ApprovalReply(approved=False, by="user:bob")
ASKS = {"uses": "ask"}
NEXT = {"when": "${steps.s1.approved}", "with": {"by": "${steps.s1.by}"}}
Suspend = Callable[..., Placement]


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    """One whose nodes ask, fail, mend and work."""
    nodes = {name: succeeds(None) for name in ("ask", "flaky", "mend", "work")}
    return make_boot(script=nodes)


@pytest.fixture
def suspended(acme: TenantRef, boot: WorkerBoot, links: LinkRunner) -> Suspend:
    """Runs whose first step asks a person."""
    script(boot, ask=asking(), work=echo)

    def suspend(*steps: dict[str, Any], **fields: Any) -> Placement:
        placement = start(acme, boot, *(steps or (ASKS, NEXT)), **fields)
        run_link(links, placement, "s1")
        assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED
        return placement

    return suspend


def public_id(placement: Placement) -> str:
    return f"exec_{placement.execution_id}"


def approval_of(tenant: TenantRef, placement: Placement, number: int = 1) -> Approval:
    with tenant_scope(tenant):
        return Approval.objects.get(execution_id=placement.execution_id, number=number)
