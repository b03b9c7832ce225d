"""`isolane resources`."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from rich.markup import escape
from rich.table import Table

from executions.services.resource_use import users_of
from foundation.errors import InvalidInput
from orchestrator.cli.commands.abandon import abandon
from orchestrator.cli.commands.resource_test import test
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import FILE, plain, read_text
from orchestrator.cli.support.platform import PlatformGroup
from resources.api.serializers.definitions import DefinitionSerializer
from resources.models import DefinitionScope, ResourceDefinition
from resources.selectors import all_definitions, definition
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import (
    create_definition,
    delete_definition,
    update_definition,
)
from resources.services.types import ResourceType, resource_types
from tenants.roles import Permission
from tenants.scope import tenant_scope

FIELDS = ("type", "config", "secrets", "scope")
Command = TypeVar("Command", bound=Callable[..., Any])


def _definition_options(command: Command) -> Command:
    options = (
        click.option("--type", "type_", help="Type of the resource, such as database; see 'isolane resources types'."),
        click.option(
            "--config", "configs", multiple=True, metavar="FIELD=VALUE",
            help="A field of the type, as JSON or text; never a secret. Repeatable.",
        ),
        click.option(
            "--secret", "secrets", multiple=True, metavar="NAME=REFERENCE",
            help="Reference to a secret: the name of a stored one, env:NAME or file:name. Repeatable.",
        ),
        click.option(
            "--scope", type=click.Choice(DefinitionScope.values),
            help="The widest scope that a blueprint may use. Default: step.",
        ),
        click.option(
            "--file", type=FILE, help="YAML or JSON file with type, config, secrets and scope; options override it."
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=PlatformGroup)
def resources() -> None:
    """Define, test, list, show and delete resources of a tenant: databases, APIs, models, caches."""


resources.add_command(test)
resources.add_command(abandon)


@resources.command("list")
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def list_(*, tenant: str, api_key: str | None, as_json: bool) -> None:
    """List the definitions of a tenant."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        found = list(all_definitions())
    if as_json:
        for one in found:
            click.echo(_as_json(one))
        return
    table = Table("resource", "type", "scope", "secrets", "changed", "by")
    for one in found:
        references = " ".join(f"{name}={reference}" for name, reference in one.secrets.items())
        table.add_row(
            one.name, one.type, one.scope, escape(plain(references)), f"{one.updated_at:%Y-%m-%d %H:%M}",
            one.updated_by,
        )  # fmt: skip
    CONSOLE.print(table)


@resources.command()
@click.argument("name")
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
def show(*, name: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print the definition NAME as YAML, in the form that --file accepts."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        found = definition(name)
    if as_json:
        click.echo(_as_json(found))
        return
    shown = {field: getattr(found, field) for field in FIELDS}
    click.echo(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).rstrip("\n"))


@resources.command()
@click.argument("name")
@tenant_options
@_definition_options
def create(*, name: str, tenant: str, api_key: str | None, **given: Any) -> None:
    """Define the resource NAME, without connecting to it."""
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.RESOURCE_EDIT)
    fields = _fields(given)
    if "type" not in fields:
        raise click.UsageError("The type is missing: give --type, or type in --file.")
    create_definition(identity.tenant, DefinitionInput(name=name, **fields), actor=identity.name)
    click.echo(f"Resource {name} is defined for {tenant}.")


@resources.command()
@click.argument("name")
@tenant_options
@_definition_options
def update(*, name: str, tenant: str, api_key: str | None, **given: Any) -> None:
    """Change the definition NAME; without --file, omitted options and fields of config stay as they are."""
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.RESOURCE_EDIT)
    with tenant_scope(identity.tenant):
        found = definition(name)
    stored = {"type": found.type} if given["file"] else _stored(found)
    update_definition(
        identity.tenant, DefinitionInput(name=name, **_fields(given, stored)), actor=identity.name
    )
    click.echo(f"Resource {name} of {tenant} is changed.")


@resources.command()
@click.argument("name")
@tenant_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(*, name: str, tenant: str, api_key: str | None, yes: bool) -> None:
    """Delete the definition NAME; refused while the newest version of a blueprint uses it."""
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.RESOURCE_EDIT)
    with tenant_scope(identity.tenant):
        definition(name)
    if not yes:
        click.confirm(f"Delete the resource {name} of {tenant}?", abort=True)
    delete_definition(identity.tenant, name, actor=identity.name, users_of=users_of)
    click.echo(f"Resource {name} of {tenant} is deleted.")


@resources.command(cls=click.Command)
@click.argument("name", required=False)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object per line, with the JSON Schema of config.",
)
def types(*, name: str | None, as_json: bool) -> None:
    """List all types, or the type NAME, with the fields of config and the secrets."""
    found = [one for one in resource_types() if name in {None, one.type}]
    if not found:
        known = ", ".join(one.type for one in resource_types())
        raise InvalidInput(f"There is no type {name!r}; known are {known}.", field="type")
    if as_json:
        for one in found:
            fields = {
                "type": one.type,
                "summary": one.summary,
                "config": one.config,
                "secrets": one.secrets,
            }
            click.echo(json.dumps(fields))
        return
    table = Table("type", "config", "secrets", "what it does")
    for one in found:
        secrets = "\n".join(f"{name}: {what}" for name, what in one.secrets.items())
        table.add_row(one.type, escape(_config_of(one)), escape(secrets), escape(one.summary))
    CONSOLE.print(table)


def _fields(given: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Merge the stored fields, those of the file and those of the options; the last wins."""
    fields = {**(stored or {}), **_in_file(given["file"])}
    for name, typed in (("config", given["configs"]), ("secrets", given["secrets"])):
        if typed:
            before = fields.get(name) or {}
            fields[name] = {**before, **_pairs(typed, name)}
    if given["type_"]:
        fields["type"] = given["type_"]
    if given["scope"]:
        fields["scope"] = given["scope"]
    return fields


def _in_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        document = yaml.safe_load(read_text(file))
    except yaml.YAMLError:
        raise InvalidInput(f"{file} is neither YAML nor JSON.", field="file") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{file} holds no object with {', '.join(FIELDS)}.", field="file")
    if unknown := sorted(str(name) for name in document.keys() - set(FIELDS)):
        raise InvalidInput(
            f"{file} has a field {unknown[0]!r}; known are {', '.join(FIELDS)}.", field="file"
        )
    return document


def _pairs(typed: Sequence[str], name: str) -> dict[str, Any]:
    pairs = {}
    for text in typed:
        key, separator, value = text.partition("=")
        if not separator or not key:
            hint = "--config" if name == "config" else "--secret"
            # The text may be a secret in the wrong place, so it is not repeated.
            raise click.BadParameter("write NAME=VALUE.", param_hint=hint)
        pairs[key] = _value(value) if name == "config" else value
    return pairs


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _stored(found: ResourceDefinition) -> dict[str, Any]:
    return {field: getattr(found, field) for field in FIELDS}


def _config_of(type_: ResourceType) -> str:
    required = type_.config["required"]
    return "\n".join(
        name if name in required else f"{name} = {json.dumps(schema.get('default'))}"
        for name, schema in type_.config["properties"].items()
    )


def _as_json(found: ResourceDefinition) -> str:
    return json.dumps(DefinitionSerializer(found).data)
