"""`isolane norp` where it cannot be run; that it runs, passes and fails is shown in tests/norp."""

from typing import Any

import pytest

from executions.placement.models import Worker
from orchestrator.norp.offered_levels import levels_of
from orchestrator.norp.probe_runner import NotRun
from orchestrator.norp.targets import CACHE_DEFINITION, cache_target, database_target
from resources.selectors import definition
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import make_boot
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.resources.definitions import define

pytestmark = pytest.mark.usefixtures("acme", "globex")


def test_without_a_worker_nothing_is_said_and_no_tenant_made(isolane: Isolane) -> None:
    result = isolane("norp")
    assert result.exit_code == 2
    assert result.output.startswith("The tests could not be run: No worker is alive")
    with platform_scope():
        assert Tenant.objects.count() == 2


def test_without_a_run_cache_neither(isolane: Isolane, settings: Any) -> None:
    settings.CACHE_URL = ""
    result = isolane("norp", "--tenant", "acme")
    assert result.exit_code == 2
    assert "set ISOLANE_CACHE_URL" in result.output


def test_levels_that_a_tenant_cannot_have_are_told_with_the_reason(acme: TenantRef) -> None:
    make_boot()
    levels = levels_of(acme)
    assert [level for level, reason in levels.items() if not reason] == [Isolation.SHARED]
    assert levels[Isolation.DOCKER] == "no worker offers it; offered are shared"
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(trusted=False)
    assert "not trusted" in levels_of(acme)[Isolation.SHARED]


def test_a_level_that_would_become_a_stricter_one_is_not_tested_as_itself(acme: TenantRef) -> None:
    boot = make_boot()
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(required_isolation=Isolation.PROCESS)
        Worker.objects.filter(boot=boot.id).update(isolation_levels=["shared", "process"])
    levels = levels_of(acme)
    assert levels[Isolation.PROCESS] == ""
    assert levels[Isolation.SHARED] == "it would get process: the tenant requires it"


def test_the_cache_definition_is_made_once(acme: TenantRef, globex: TenantRef) -> None:
    for _ in range(2):
        target = cache_target(acme, globex, actor="tests")
    assert target.other is not None
    for subject in (target.subject, target.other):
        with tenant_scope(subject.tenant):
            found = definition(CACHE_DEFINITION)
        assert (found.type, found.scope) == ("cache", "execution")


def test_a_definition_that_steps_may_not_share_is_refused_with_the_way_out(acme: TenantRef) -> None:
    define(acme, "billing-db", scope="step")
    with pytest.raises(NotRun, match="isolane resources update billing-db --scope execution"):
        database_target(acme, "billing-db")
