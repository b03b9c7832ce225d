"""`isolane api-keys`."""

import pytest

from foundation.errors import InvalidInput
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


def test_a_key_is_limited_to_blueprints(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    limit = ("--blueprint", "hiring", "--blueprint", "billing")
    key = isolane("api-keys", "create", "acme", "--name", "some", *limit).output.strip()
    isolane("api-keys", "create", "globex", "--name", "every")
    found = find_api_key(key)
    assert found is not None
    assert found.blueprints == ["billing", "hiring"]
    assert "billing hiring" in isolane("api-keys", "list", "acme").output
    assert " all " in isolane("api-keys", "list", "globex").output
    with pytest.raises(InvalidInput, match="blueprint 'No' is not a blueprint's name"):
        isolane("api-keys", "create", "acme", "--name", "ci", "--blueprint", "No")
