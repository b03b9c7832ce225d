"""The demo's tenants are ordinary ones; where the workers do not offer process, they are trusted."""

import pytest

from orchestrator.cli.support import demo_tenants
from orchestrator.cli.support.demo_tenants import TENANTS, prepare_tenants
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope

ORDINARY = (False, "process")
TRUSTED = (True, "shared")


def levels() -> dict[str, tuple[bool, str]]:
    with platform_scope():
        rows = Tenant.objects.values_list("schema_name", "trusted", "required_isolation")
        return {schema: (trusted, required) for schema, trusted, required in rows}


@pytest.mark.usefixtures("provisioner")
def test_they_are_trusted_only_where_process_is_not_offered_and_nobody_elses_tenant_is_touched(
    acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """acme and globex exist already, and not by a demo; a second demo on the same servers decides anew."""
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(trusted=False, required_isolation="docker")
    others = {"acme": (False, "docker"), "globex": TRUSTED}
    for is_offered, expected in ((True, ORDINARY), (False, TRUSTED), (True, ORDINARY)):
        monkeypatch.setattr(
            demo_tenants, "report_process_level", lambda *_, found=is_offered: found
        )
        assert [tenant.schema for tenant in prepare_tenants(["w1@test"])] == list(TENANTS)
        assert levels() == {**others, "initech": expected}
