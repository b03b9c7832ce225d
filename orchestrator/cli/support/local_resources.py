"""Resources of `isolane run --local`: definitions from a file, secrets from environment variables.

\b
billing-db:
  type: database
  scope: execution
  config: {host: localhost, dbname: shop, user: reader}
  secrets: {password: env:SHOP_PASSWORD}
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from executions.blueprints.plan import DeclaredResource, plan
from executions.blueprints.validation.resources import check_defined, scope_of
from isolane.protocol import Grant, ResourceScope
from isolane.providers.registry import provider_of
from isolane.shapes import ShapeError, build
from orchestrator.cli.support.parsing import located, read_text
from resources.definition_ref import DefinitionRef

FROM_ENVIRONMENT = "env:"


@dataclass(frozen=True, kw_only=True)
class LocalDefinition:
    """A definition in the file."""

    type: str
    config: dict[str, Any]
    secrets: dict[str, str]
    scope: ResourceScope = "step"


def local_grants(document: Mapping[str, Any], file: Path | None) -> tuple[Grant, ...]:
    """Return a grant for each resource that the blueprint declares, as the file defines it."""
    declared = plan(document).resources
    if not declared:
        return ()
    if file is None:
        names = ", ".join(resource.definition for resource in declared)
        raise click.ClickException(
            f"The blueprint declares resources ({names}): define them in a file, given with --resources."
        )
    defined = _definitions(file)
    with located(file):
        check_defined(declared, defined)
    return tuple(_grant(resource, defined[resource.definition], file) for resource in declared)


def _definitions(file: Path) -> dict[str, DefinitionRef]:
    try:
        found = yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise click.ClickException(f"{file}: not YAML: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(said, dict) for said in found.values()):
        raise click.ClickException(
            f"{file}: the file must map names to definitions, each with type, config, secrets and scope."
        )
    try:
        return {
            str(name): DefinitionRef(name=str(name), **vars(_read(str(name), said)))
            for name, said in found.items()
        }
    except ShapeError as error:
        raise click.ClickException(f"{file}: {error}") from None


def _read(name: str, said: dict[str, Any]) -> LocalDefinition:
    found: LocalDefinition = build(LocalDefinition, {"config": {}, "secrets": {}, **said}, name)
    return found


def _grant(resource: DeclaredResource, defined: DefinitionRef, file: Path) -> Grant:
    where = f"{file}: {resource.definition}"
    try:
        provider = provider_of(defined.type)
        config = build(provider.config, defined.config, "config")
        provider.check_definition(config, frozenset(defined.secrets))
    except (LookupError, ShapeError, ValueError) as error:
        raise click.ClickException(f"{where}: {error}") from None
    if defined.config.get("mint") or defined.type == "cache":
        raise click.ClickException(
            f"{where}: minted roles and the run cache need a worker, and there is none here."
        )
    return Grant(
        name=resource.name,
        type=defined.type,
        definition=resource.definition,
        scope=scope_of(resource, defined),
        eager=resource.eager,
        config=dict(defined.config),
        secrets={name: _secret(said, f"{where}.{name}") for name, said in defined.secrets.items()},
    )


def _secret(said: str, where: str) -> str:
    if not said.startswith(FROM_ENVIRONMENT):
        raise click.ClickException(f"{where}: write env:NAME; a secret must not be in a file.")
    name = said.removeprefix(FROM_ENVIRONMENT)
    if name not in os.environ:
        raise click.ClickException(f"{where}: the environment has no {name}.")
    return os.environ[name]
