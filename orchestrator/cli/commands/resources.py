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
from orchestrator.cli.support.identity import tenant_options
from orchestrator.cli.support.owner import Owner
from orchestrator.cli.support.parsing import FILE, plain, text_of
from orchestrator.cli.support.platform import PlatformGroup
from resources.api.serializers import DefinitionSerializer
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
        click.option("--type", "type_", help="Such as database; 'isolane resources types' lists them."),
        click.option(
            "--config", "configs", multiple=True, metavar="FIELD=VALUE",
            help="Repeatable; JSON or text. Never a secret.",
        ),
        click.option(
            "--secret", "secrets", multiple=True, metavar="NAME=REFERENCE",
            help="Repeatable; a stored secret's name, env:NAME or file:name.",
        ),
        click.option(
            "--scope", type=click.Choice(DefinitionScope.values),
            help="The widest that a blueprint may use it in; step if not said.",
        ),
        click.option(
            "--file", type=FILE, help="YAML or JSON with type, config, secrets and scope; options go before it."
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=PlatformGroup)
def resources() -> None:
    """What a tenant's runs may use: databases, APIs, models, caches."""


resources.add_command(test)
resources.add_command(abandon)


@resources.command("list")
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def list_(*, tenant: str, api_key: str | None, as_json: bool) -> None:
    """List a tenant's definitions."""
    owner = Owner(tenant, api_key)
    with tenant_scope(owner.tenant):
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
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of YAML.")
def show(*, name: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print the definition NAME as YAML, in the form that --file takes."""
    owner = Owner(tenant, api_key)
    with tenant_scope(owner.tenant):
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
    """Define the resource NAME; nothing is connected to."""
    owner = Owner(tenant, api_key)
    owner.require_change(Permission.RESOURCE_EDIT)
    fields = _fields(given)
    if "type" not in fields:
        raise click.UsageError("Say which type it is: --type, or type in --file.")
    create_definition(owner.tenant, DefinitionInput(name=name, **fields), actor=owner.name)
    click.echo(f"Resource {name} is defined for {tenant}.")


@resources.command()
@click.argument("name")
@tenant_options
@_definition_options
def update(*, name: str, tenant: str, api_key: str | None, **given: Any) -> None:
    """Change NAME; without --file, what is not given stays, also single fields of config."""
    owner = Owner(tenant, api_key)
    owner.require_change(Permission.RESOURCE_EDIT)
    with tenant_scope(owner.tenant):
        found = definition(name)
    stored = {"type": found.type} if given["file"] else _stored(found)
    update_definition(
        owner.tenant, DefinitionInput(name=name, **_fields(given, stored)), actor=owner.name
    )
    click.echo(f"Resource {name} of {tenant} is changed.")


@resources.command()
@click.argument("name")
@tenant_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(*, name: str, tenant: str, api_key: str | None, yes: bool) -> None:
    """Forget the definition NAME; refused while the newest version of a blueprint uses it."""
    owner = Owner(tenant, api_key)
    owner.require_change(Permission.RESOURCE_EDIT)
    with tenant_scope(owner.tenant):
        definition(name)
    if not yes:
        click.confirm(f"Delete the resource {name} of {tenant}?", abort=True)
    delete_definition(owner.tenant, name, actor=owner.name, users_of=users_of)
    click.echo(f"Resource {name} of {tenant} is deleted.")


@resources.command(cls=click.Command)
@click.argument("name", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="With the JSON Schemas of config, one object a line."
)
def types(*, name: str | None, as_json: bool) -> None:
    """List the types, or the one called NAME, with the fields of config and the secrets that they take."""
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
    """What a definition is to hold: what is stored, then the file's, then the options'."""
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
        document = yaml.safe_load(text_of(file))
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
            # What was typed may be a secret in the wrong place: it is not repeated.
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
