"""`isolane secrets`."""

import json
from pathlib import Path

import click
import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from foundation.errors import Conflict, Forbidden, InvalidInput, NotFound
from resources.models import Secret
from resources.services.secrets import put_secret, resolve
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tenants.services.api_keys import create_api_key
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.resources.definitions import VALUE, define


def opened(tenant: TenantRef) -> str:
    with tenant_scope(tenant):
        return resolve(tenant.schema, {"x": "billing"})["x"]


def test_a_value_comes_from_standard_input_or_a_file_and_is_never_shown(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, tmp_path: Path
) -> None:
    put = isolane("secrets", "set", "billing", "--tenant", "acme", typed=f"{VALUE}\n")
    assert put.output == "Secret billing of acme is set (version 1).\n"
    assert opened(acme) == VALUE
    file = tmp_path / "value"
    file.write_text("first line\nsecond line\r\n")
    replaced = isolane("secrets", "set", "billing", "--tenant", "acme", "--from-file", str(file))
    assert "version 2" in replaced.output
    assert opened(acme) == "first line\nsecond line"
    listed = isolane("secrets", "list", "--tenant", "acme").output
    assert "billing" in listed
    assert "second line" not in listed
    [line] = isolane("secrets", "list", "--tenant", "acme", "--json").output.splitlines()
    assert set(json.loads(line)) == {"name", "version", "created_at", "updated_at", "updated_by"}
    assert isolane("secrets", "list", "--tenant", "globex", "--json").output == ""


def test_a_value_is_typed_twice_without_echo(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def prompt(text: str, **options: object) -> str:
        asked.append((text, options))
        return VALUE

    monkeypatch.setattr("orchestrator.cli.commands.secrets._is_terminal", lambda: True)
    monkeypatch.setattr(click, "prompt", prompt)
    shown = isolane("secrets", "set", "billing", "--tenant", "acme")
    assert opened(acme) == VALUE
    assert asked == [("Value", {"hide_input": True, "confirmation_prompt": True})]
    assert VALUE not in shown.output


def test_a_value_is_never_an_argument(isolane: Isolane, acme: TenantRef) -> None:
    assert isolane("secrets", "set", "billing", VALUE, "--tenant", "acme").exit_code == 2
    with tenant_scope(acme):
        assert not Secret.objects.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("../x", VALUE), ("billing", "12345"), ("billing", "")]
)
def test_what_does_not_fit_is_refused(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, name: str, value: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        isolane("secrets", "set", name, "--tenant", "acme", typed=value)
    assert VALUE not in refused.value.detail
    assert "12345" not in refused.value.detail


def test_a_secret_is_deleted_after_a_question(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    define(acme)
    put_secret(globex, "billing", VALUE, actor="tests")
    with pytest.raises(Conflict, match="used by the definition 'billing-db'"):
        isolane("secrets", "delete", "billing", "--tenant", "acme", "--yes")
    assert isolane("secrets", "delete", "billing", "--tenant", "globex", typed="n\n").exit_code == 1
    assert opened(globex) == VALUE
    gone = isolane("secrets", "delete", "billing", "--tenant", "globex", typed="y\n")
    assert "Secret billing of globex is deleted." in gone.output
    assert opened(acme) == VALUE
    with pytest.raises(NotFound):
        isolane("secrets", "delete", "billing", "--tenant", "globex", "--yes")


def test_only_an_admins_key_writes(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    author, admin = (
        create_api_key(tenant=acme, name="k", role=role, actor="tests")
        for role in (Role.AUTHOR, Role.ADMIN)
    )
    command = ("secrets", "set", "billing", "--tenant", "acme", "--api-key")
    with pytest.raises(Forbidden, match="lacks secret:edit"):
        isolane(*command, author, typed=VALUE)
    isolane(*command, admin, typed=VALUE)
    assert opened(acme) == VALUE


def test_the_key_is_rotated_with_progress(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, settings: Settings
) -> None:
    for tenant in (acme, globex):
        put_secret(tenant, "billing", VALUE, actor="tests")
    newest = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [newest, *settings.ENCRYPTION_KEYS]
    done = isolane("secrets", "rotate")
    assert done.exit_code == 0
    assert "[1/2] acme: 1 rotated, 0 current" in done.output
    assert "[2/2] globex: 1 rotated, 0 current" in done.output
    settings.ENCRYPTION_KEYS = [newest]
    assert (opened(acme), opened(globex)) == (VALUE, VALUE)

    with tenant_scope(acme):
        Secret.objects.update(sealed=b"nonsense")
    failed = isolane("secrets", "rotate")
    assert failed.exit_code == 1
    assert "1 cannot be decrypted with any of ENCRYPTION_KEYS" in failed.output
    assert opened(globex) == VALUE
