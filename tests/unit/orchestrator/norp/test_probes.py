"""The probes are blueprints as anybody could write them."""

import pytest

from executions.blueprints.plan import plan
from orchestrator.norp import probes
from orchestrator.norp.probes import Document, ProbedDefinition
from tenants.names import BLUEPRINT_NAME
from tenants.scope import TenantRef
from tenants.statuses import TenantStatus

TENANT = TenantRef(id=1, schema="acme", status=TenantStatus.ACTIVE)
LONGEST = "d" * 63


def all_of(type_: str) -> list[Document]:
    subject = ProbedDefinition(tenant=TENANT, definition=LONGEST, type=type_)
    makers = (probes.one_node, probes.several_nodes, probes.asking, probes.failing, probes.overdue)
    return [make(subject, "shared") for make in makers]


@pytest.mark.parametrize("type_", ["cache", "database"])
def test_each_declares_its_resource_for_the_whole_run_at_the_level(type_: str) -> None:
    for document in all_of(type_):
        planned = plan(document)
        (resource,) = planned.resources
        assert (resource.type, resource.definition, resource.scope) == (type_, LONGEST, "execution")
        assert planned.isolation == "shared"
        assert BLUEPRINT_NAME.match(document["name"])
        assert document["name"].startswith("norp.")


def test_they_are_different_workflows() -> None:
    subject = ProbedDefinition(tenant=TENANT, definition="scratch", type="cache")
    found = {document["name"] for document in all_of("cache")}
    assert len(found) == len(all_of("cache"))
    assert probes.one_node(subject, "shared", "another")["name"] == "norp.another.scratch"


def test_a_cache_gets_an_entry_that_has_to_be_evicted() -> None:
    uses = [[step["uses"] for step in document["steps"]] for document in all_of("cache")]
    assert ["cache.set", "resources.check"] in uses
    assert all(
        "cache.set" not in step["uses"]
        for document in all_of("database")
        for step in document["steps"]
    )


def test_the_pooling_probe_has_three_nodes_and_nothing_else() -> None:
    several = all_of("cache")[1]
    assert [step["uses"] for step in several["steps"]] == ["resources.check"] * 3
