"""Publishing: the same content is one version, new content the next, and each tenant counts its own."""

from functools import partial

import pytest

from executions.blueprint.errors import BadReference, InvalidBlueprint
from executions.services.blueprints import Published, publish
from executions.worker.machine import Machine
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document
from tests.integration.executions.threads import at_once


def push(tenant: TenantRef, *keys: str) -> tuple[int, bool]:
    with tenant_scope(tenant):
        published: Published = publish(document(*keys))
    return published.number, published.is_new


def test_versions_count_up_per_tenant(acme: TenantRef, globex: TenantRef, machine: Machine) -> None:
    assert push(acme, "a") == (1, True)
    assert push(acme, "b") == (2, True)
    assert push(acme, "a") == (1, False)
    assert push(globex, "b") == (1, True)


def test_a_node_that_no_worker_has_is_refused(
    acme: TenantRef, globex: TenantRef, machine: Machine
) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant), pytest.raises(InvalidBlueprint, match="known are work"):
            publish(document(uses="absent"))


def test_a_reference_that_is_not_whole_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    flow = document()
    flow["steps"][0]["with"] = {"x": "${inputs.{a: b}}"}
    for tenant in (acme, globex):
        with tenant_scope(tenant), pytest.raises(BadReference) as refused:
            publish(flow)
        assert refused.value.field == "$.steps[0].with.x"


def test_two_at_once_get_a_number_each(acme: TenantRef, globex: TenantRef) -> None:
    pushes = [partial(push, tenant, key) for tenant in (acme, globex) for key in ("a", "b")]
    results = at_once(pushes)
    assert sorted(results[:2]) == sorted(results[2:]) == [(1, True), (2, True)]
