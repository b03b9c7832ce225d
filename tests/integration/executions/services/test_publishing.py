"""Publishing: the same content is one version, new content the next, and each tenant counts its own."""

from functools import partial

import pytest

from executions.blueprints.errors import BadReference, InvalidBlueprint
from executions.models import BlueprintVersion
from executions.selectors.blueprints import blueprint_version
from executions.services.publishing import (
    Published,
    catalogue_nodes,
    diff,
    publish,
    validate_text,
)
from executions.worker.boot import WorkerBoot
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document
from tests.integration.executions.threads import at_once

TEXT = "name: flow\nsteps:\n- key: one\n  uses: work\n- key: two\n  uses: work\n  with: {x: '${steps.one.n}'}\n"


def push(tenant: TenantRef, *keys: str) -> tuple[int, bool]:
    with tenant_scope(tenant):
        published: Published = publish(document(*keys))
    return published.number, published.is_new


def test_versions_count_up_per_tenant(acme: TenantRef, globex: TenantRef, boot: WorkerBoot) -> None:
    assert push(acme, "a") == (1, True)
    assert push(acme, "b") == (2, True)
    assert push(acme, "a") == (1, False)
    assert push(globex, "b") == (1, True)


def test_a_node_that_no_worker_has_is_refused(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
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


def test_a_text_is_read_checked_and_stored(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            assert publish(validate_text(TEXT)) == Published(name="flow", number=1, is_new=True)
            assert publish(validate_text(TEXT)) == Published(name="flow", number=1, is_new=False)
            assert blueprint_version("flow").content == validate_text(TEXT)


def test_a_text_that_cannot_run_is_refused_with_its_line(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            with pytest.raises(InvalidBlueprint, match=r"^line 6: \$\.steps\[1\]\.uses: .*'wrok'"):
                validate_text(TEXT.replace("work\n  with", "wrok\n  with"))
            with pytest.raises(InvalidBlueprint, match=r"^line 7: \$\.steps\[1\]\.with\.x: "):
                validate_text(TEXT.replace("steps.one.n", "steps.two.n"))
            assert not BlueprintVersion.objects.exists()


def test_the_nodes_are_those_that_a_worker_described(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            known = catalogue_nodes()
        assert set(known) == {"work"}
        assert (known["work"].parameters, known["work"].uses_key) == ({}, False)


def test_before_any_worker_no_node_is_known(acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            assert catalogue_nodes() == {}


def test_a_diff_is_of_the_tenants_own_versions(acme: TenantRef, globex: TenantRef) -> None:
    push(acme, "a")
    push(acme, "b")
    push(globex, "c")
    with tenant_scope(acme):
        lines = diff("flow", 1, 2).splitlines()
        assert diff("flow", 1, 1) == ""
    assert lines[:2] == ["--- flow@1", "+++ flow@2"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-- key: a", "+- key: b"]
    with tenant_scope(globex), pytest.raises(NotFound, match="flow@2"):
        diff("flow", 1, 2)
