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
from orchestrator.cli.support.parsing import FILE, located, text_of
from orchestrator.cli.support.platform import PlatformGroup, has_platform, require_platform
from tenants.roles import Permission
from tenants.scope import tenant_scope
from tenants.services.api_keys import caller_of_key


@click.group(cls=PlatformGroup)
def blueprints() -> None:
    """Workflows of a tenant: check, publish, list, show and compare them."""


@blueprints.command(cls=click.Command)
@click.argument("file", type=FILE)
@click.option("--tenant", help="Say, too, what publishing it for this tenant would do.")
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
    """Check FILE (YAML or JSON) as for publishing, and store nothing; exit 1 if it does not fit.

    The nodes are those of the platform's workers, or of the packages that are named here. Without either, all but the
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
    outlook = _outlook(document, tenant, api_key) if asked else ""
    click.echo(f"{document['name']} fits.{outlook}")
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
    """Check FILE (YAML or JSON) and publish it as the next version."""
    identity = CommandIdentity(tenant, api_key)
    document = _checked(file, catalogue_nodes())
    identity.require(Permission.BLUEPRINT_EDIT, document["name"])
    with tenant_scope(identity.tenant):
        published = publish(document)
    news = "published" if published.is_new else "unchanged"
    click.echo(f"{published.name}@{published.number} {news} for {tenant}.")


@blueprints.command("list")
@tenant_options
def list_(tenant: str, api_key: str | None) -> None:
    """List a tenant's blueprints."""
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
@click.option("--version", type=click.IntRange(min=1), help="The newest if not said.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of YAML.")
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
    """Print what changed in NAME from version OLD to NEW."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        blueprint_version(name, reach=identity.reach)
        changed = diff_of(name, old, new)
    click.echo(changed, nl=False)


def _checked(file: Path, known: Mapping[str, NodeInfo]) -> dict[str, Any]:
    with located(file):
        source = read(text_of(file))
        with source.located():
            check_document(source.document, known)
    return source.document


def _outlook(document: dict[str, Any], tenant: str | None, api_key: str | None) -> str:
    """What publishing would do for a tenant, if one is named; a key must have the right to, as over HTTP."""
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
