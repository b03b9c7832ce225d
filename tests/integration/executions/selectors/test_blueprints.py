"""executions.selectors.blueprints: versions of the tenant's own blueprints, within reach."""

import pytest

from executions.selectors.blueprints import blueprint_version
from executions.services.publishing import publish
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document


def test_a_version_is_found_by_number_or_is_the_newest(acme: TenantRef, globex: TenantRef) -> None:
    with tenant_scope(acme):
        publish(document("a"))
        publish(document("b"))
    with tenant_scope(globex):
        publish(document("b"))
    with tenant_scope(acme):
        assert (blueprint_version("flow").number, blueprint_version("flow", 1).number) == (2, 1)
        assert blueprint_version("flow", 1).content == document("a")
    with tenant_scope(globex):
        assert blueprint_version("flow").number == 1
        for number, said in ((2, "'flow@2'"), (0, "'flow@0'")):
            with pytest.raises(NotFound, match=said):
                blueprint_version("flow", number)
        with pytest.raises(NotFound, match="no blueprint 'other'; publish"):
            blueprint_version("other")


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "Flow", "x" * 101])
def test_an_invalid_name_is_not_found(acme: TenantRef, globex: TenantRef, name: str) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant), pytest.raises(NotFound, match="There is no blueprint"):
            blueprint_version(name)


def test_a_blueprint_out_of_reach_is_not_found(acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish(document("a"))
            assert blueprint_version("flow", reach=frozenset({"flow"})).number == 1
            with pytest.raises(NotFound, match="There is no blueprint 'flow'"):
                blueprint_version("flow", reach=frozenset({"other"}))
