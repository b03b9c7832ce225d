"""`isolane api-keys`."""

from tenants.scope import TenantRef
from tenants.services.api_keys import HINT_LENGTH, find_api_key
from tests.integration.orchestrator.cli.conftest import Isolane


def test_a_key_is_printed_listed_by_its_beginning_and_revoked(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    key = isolane("api-keys", "create", "acme", "--name", "ci", "--role", "viewer").output.strip()
    found = find_api_key(key)
    assert found is not None
    assert (found.tenant_id, found.role) == (acme.id, "viewer")

    listed = isolane("api-keys", "list", "acme").output
    assert f"{key[:HINT_LENGTH]}…" in listed
    assert key not in listed
    assert key[:HINT_LENGTH] not in isolane("api-keys", "list", "globex").output

    revoked = isolane("api-keys", "revoke", "acme", f"{key[:HINT_LENGTH]}…")
    assert revoked.exit_code == 0
    assert find_api_key(key) is None


def test_a_key_is_made_for_something(isolane: Isolane, acme: TenantRef) -> None:
    refused = isolane("api-keys", "create", "acme")
    assert refused.exit_code == 2
    assert "--name" in refused.output
