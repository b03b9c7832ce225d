"""`isolane blueprints`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from executions.blueprints.reading import read
from executions.blueprints.schema.document import content_hash
from executions.blueprints.validation.nodes import NodeInfo
from executions.blueprints.validation.rules import check_document
from executions.blueprints.writing import as_yaml
from executions.models import BlueprintVersion
from executions.selectors.blueprints import blueprint_version
from executions.selectors.blueprints import blueprints as found
from executions.services.publishing import catalogue_nodes, publish
from executions.services.publishing import diff as diff_of
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import CommandIdentity, api_key_option, tenant_options
from orchestrator.cli.support.local_nodes import local_runner, node_options, nodes_in
from orchestrator.cli.support.parsing import FILE, located, read_text
from orchestrator.cli.support.platform import PlatformGroup, has_platform, require_platform
from tenants.roles import Permission
from tenants.scope import tenant_scope
from tenants.services.api_keys import caller_of_key


@click.group(cls=PlatformGroup)
def blueprints() -> None:
    """Check, publish, list, show and compare blueprints of a tenant."""


@blueprints.command(cls=click.Command)
@click.argument("file", type=FILE)
@click.option(
    "--tenant", help="Also print the version that publishing would create for this tenant."
)
@api_key_option
@node_options
def validate(
    *,
    file: Path,
    tenant: str | None,
    api_key: str | None,
    packages: tuple[str, ...],
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
) -> None:
    """Check the blueprint in FILE (YAML or JSON) without storing it; exit 1 if it is not valid.

    Nodes are looked up in the packages named here, else at the platform's workers. Without either, everything but the
    nodes is checked.
    """
    is_local = bool(packages or tasks or paths)
    if is_local:
        with local_runner(file, packages=packages, tasks=tasks, paths=paths) as backend:
            known = nodes_in(backend)
    else:
        known = catalogue_nodes() if has_platform() else {}
    document = _checked(file, known)
    asked = tenant or (has_platform() and not is_local)
    effect = _effect(document, tenant, api_key) if asked else ""
    click.echo(f"{document['name']} fits.{effect}")
    if not known:
        reason = (
            "No worker has described its nodes yet" if has_platform() else "No platform runs here"
        )
        click.echo(
            f"{reason}: names of nodes and their parameters were not checked; --package checks against your own.",
            err=True,
        )


@blueprints.command()
@click.argument("file", type=FILE)
@tenant_options
def push(file: Path, tenant: str, api_key: str | None) -> None:
    """Check the blueprint in FILE (YAML or JSON) and publish it as the next version."""
    identity = CommandIdentity(tenant, api_key)
    document = _checked(file, catalogue_nodes())
    identity.require(Permission.BLUEPRINT_EDIT, document["name"])
    with tenant_scope(identity.tenant):
        published = publish(document)
    result = "published" if published.is_new else "unchanged"
    click.echo(f"{published.name}@{published.number} {result} for {tenant}.")


@blueprints.command("list")
@tenant_options
def list_(tenant: str, api_key: str | None) -> None:
    """List the blueprints of a tenant."""
    identity = CommandIdentity(tenant, api_key)
    table = Table("blueprint", "newest", "versions", "published")
    with tenant_scope(identity.tenant):
        for blueprint in found(identity.reach):
            table.add_row(
                blueprint.name,
                str(blueprint.newest),
                str(blueprint.versions_total),
                f"{blueprint.published_at:%Y-%m-%d %H:%M}",
            )
    CONSOLE.print(table)


@blueprints.command()
@click.argument("name")
@tenant_options
@click.option("--version", type=click.IntRange(min=1), help="Default: the newest.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
def show(
    *, name: str, tenant: str, api_key: str | None, version: int | None, as_json: bool
) -> None:
    """Print the blueprint NAME as YAML."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        content = blueprint_version(name, version, identity.reach).content
    text = json.dumps(content, indent=2, ensure_ascii=False) if as_json else as_yaml(content)
    click.echo(text.rstrip("\n"))


@blueprints.command()
@click.argument("name")
@click.argument("old", type=click.IntRange(min=1))
@click.argument("new", type=click.IntRange(min=1))
@tenant_options
def diff(*, name: str, old: int, new: int, tenant: str, api_key: str | None) -> None:
    """Print the difference between versions OLD and NEW of the blueprint NAME."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        blueprint_version(name, reach=identity.reach)
        changed = diff_of(name, old, new)
    click.echo(changed, nl=False)


def _checked(file: Path, known: Mapping[str, NodeInfo]) -> dict[str, Any]:
    with located(file):
        source = read(read_text(file))
        with source.located():
            check_document(source.document, known)
    return source.document


def _effect(document: dict[str, Any], tenant: str | None, api_key: str | None) -> str:
    """Describe the effect of publishing for a tenant, if one is named; a key needs the permission, as over HTTP."""
    require_platform()
    name = document["name"]
    if not tenant:
        if api_key:
            caller_of_key(api_key).require(Permission.BLUEPRINT_EDIT, name)
        return ""
    identity = CommandIdentity(tenant, api_key)
    identity.require(Permission.BLUEPRINT_EDIT, name)
    with tenant_scope(identity.tenant):
        versions = BlueprintVersion.objects.filter(blueprint__name=name).order_by("-number")
        same = versions.filter(content_hash=content_hash(document)).first()
        newest = versions.first()
    if same:
        return f" {tenant} has it as {name}@{same.number}."
    return f" For {tenant} it would become {name}@{newest.number + 1 if newest else 1}."
