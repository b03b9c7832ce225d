"""`isolane migrate` and `isolane provisioner`."""

import psycopg
import pytest

from tenants import owner
from tenants.owner import OwnerNeeded
from tenants.scope import TenantRef
from tests.factories import make_tenant
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.tenants.outdated import outdate

Server = psycopg.Connection[tuple[object, ...]]


def test_migrate_names_the_tenants_that_failed(
    isolane: Isolane, acme: TenantRef, superuser: Server
) -> None:
    assert "All schemas are up to date." in isolane("migrate").output
    make_tenant("broken")
    outdate(superuser, "broken", broken=True)
    superuser.execute("GRANT CONNECT ON DATABASE template1 TO PUBLIC")
    try:
        failed = isolane("migrate")
    finally:
        superuser.execute("REVOKE CONNECT ON DATABASE template1 FROM PUBLIC")
    assert failed.exit_code == 1
    assert "  broken: database_error: relation " in failed.output
    assert "1 tenants could not be migrated; all others are up to date." in failed.output
    assert (
        "Warning: the roles 'isolane_login', 'isolane_worker' may connect to other databases"
        in failed.output
    )


@pytest.mark.parametrize("command", ["migrate", "provisioner"])
def test_without_the_owners_url_they_say_so(
    isolane: Isolane, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(owner, "OWNER", "nobody")
    with pytest.raises(OwnerNeeded, match="set DATABASE_OWNER_URL for this process"):
        isolane(command)
