"""A worker that goes on after others have taken its run over: refused at every turn, and the run's events say so."""

from dataclasses import replace

import pytest
from celery.exceptions import Ignore

from executions.models import ExecutionEvent
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.reaper import reap
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import let_lapse, make_boot, make_placed, steps_of

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def other() -> WorkerBoot:
    """The worker that is held for lost."""
    return make_boot(name="lost@test")


@pytest.fixture
def placement(acme: TenantRef, other: WorkerBoot) -> Placement:
    return replace(make_placed(acme, other), worker=other.node_name)


def refused(tenant: TenantRef, placement: Placement) -> list[tuple[str, str]]:
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(
            execution_id=placement.execution_id, kind="fence.refused"
        ).order_by("sequence")
        assert all(event.data["worker"] == "lost@test" for event in found)
        return [(event.data["what"], event.step) for event in found]


def take_over(boot: WorkerBoot) -> None:
    let_lapse(boot)
    assert reap("w1@test") == 1


def test_its_claim(acme: TenantRef, other: WorkerBoot, placement: Placement) -> None:
    take_over(other)
    links = LinkRunner(other)
    links.begin("one", placement, "one")
    with pytest.raises(Ignore):
        links.run("one", "one", [])
    links.end("one")
    assert refused(acme, placement) == [("claim", "one")]


def test_its_checkpoint(acme: TenantRef, other: WorkerBoot, placement: Placement) -> None:
    links = LinkRunner(other)
    links.begin("one", placement, "one")
    take_over(other)
    with pytest.raises(Ignore):
        links.run("one", "one", [])
    links.end("one")
    assert refused(acme, placement) == [("checkpoint", "one")]
    assert steps_of(acme, placement.execution_id)["one"] == "pending"


def test_its_close(acme: TenantRef, other: WorkerBoot) -> None:
    placement = replace(make_placed(acme, other, "one"), worker=other.node_name)
    links = LinkRunner(other)
    links.begin("one", placement, "one")
    links.run("one", "one", [])
    take_over(other)
    links.end("one")
    assert refused(acme, placement) == [("close", "")]
