"""With a key every command has that key's rights, so what only operators may do is refused."""

from collections.abc import Iterator

import click
import pytest

from foundation.errors import Forbidden
from orchestrator.cli.main import COMMANDS, cli
from orchestrator.cli.support.platform import OperatorCommand
from tenants.models import ApiKey, Tenant
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope
from tenants.services.api_keys import create_api_key
from tests.integration.orchestrator.cli.conftest import Isolane

# These do nothing on the platform on behalf of a caller: they are, start or stop processes, or work on files.
LOCAL = {
    "up", "demo", "status", "down", "run", "flower", "web", "folders", "levels",
    "keys generate", "resources types",
}  # fmt: skip


def test_an_operators_command_is_refused_with_a_key(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create_api_key(tenant=acme, name="viewer", role=Role.VIEWER, actor="tests")
    monkeypatch.setenv("ISOLANE_API_KEY", key)
    for command in (
        "tenants create initech",
        "tenants list",
        "api-keys create globex --name mine --role admin",
        "secrets rotate",
        "migrate",
        "norp",
    ):
        with pytest.raises(Forbidden, match="'unset ISOLANE_API_KEY'") as refused:
            isolane(*command.split())
        assert key not in str(refused.value)
    with platform_scope():
        assert (Tenant.objects.count(), ApiKey.objects.count()) == (2, 1)


def test_every_command_takes_a_key_or_is_an_operators(database: None) -> None:
    with click.Context(cli) as context:
        groups = [(name, cli.get_command(context, name)) for name in COMMANDS]
    found = {
        name
        for path, group in groups
        if group is not None
        for name, command in leaves(path, group)
        if not isinstance(command, OperatorCommand)
        and "api_key" not in {parameter.name for parameter in command.params}
    }
    assert found == LOCAL


def leaves(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from leaves(f"{path} {name}", child)
