"""`isolane blueprints`."""

import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from executions.blueprint.document import content_hash
from executions.blueprint.writing import as_yaml
from executions.models import BlueprintVersion
from executions.selectors import blueprints as found
from executions.services.blueprints import (
    catalogue_nodes,
    publish_text,
    validate_text,
)
from executions.services.blueprints import diff as diff_of
from executions.services.blueprints import version as published_version
from orchestrator.cli.django import CONSOLE
from orchestrator.cli.texts import FILE, located, text_of
from tenants.scope import tenant_scope
from tenants.selectors import tenant_by_schema


@click.group()
def blueprints() -> None:
    """Workflows of a tenant: check, publish, list, show and compare them."""


@blueprints.command()
@click.argument("file", type=FILE)
@click.option("--tenant", help="Say, too, what publishing it for this tenant would do.")
def validate(file: Path, tenant: str | None) -> None:
    """Check FILE (YAML or JSON) as for publishing, and store nothing; exit 1 if it does not fit."""
    with located(file):
        document = validate_text(text_of(file))
    click.echo(f"{document['name']} fits.{_outlook(document, tenant) if tenant else ''}")
    if not catalogue_nodes():
        click.echo(
            "No worker has described its nodes yet: names of nodes and their parameters were not checked.",
            err=True,
        )


@blueprints.command()
@click.argument("file", type=FILE)
@click.option("--tenant", required=True)
def push(file: Path, tenant: str) -> None:
    """Check FILE (YAML or JSON) and publish it as the next version."""
    with tenant_scope(tenant_by_schema(tenant)), located(file):
        published = publish_text(text_of(file))
    news = "published" if published.is_new else "unchanged"
    click.echo(f"{published.name}@{published.number} {news} for {tenant}.")


@blueprints.command("list")
@click.option("--tenant", required=True)
def list_(tenant: str) -> None:
    """List a tenant's blueprints."""
    table = Table("blueprint", "newest", "versions", "published")
    with tenant_scope(tenant_by_schema(tenant)):
        for blueprint in found():
            table.add_row(
                blueprint.name,
                str(blueprint.newest),
                str(blueprint.versions_total),
                f"{blueprint.published_at:%Y-%m-%d %H:%M}",
            )
    CONSOLE.print(table)


@blueprints.command()
@click.argument("name")
@click.option("--tenant", required=True)
@click.option("--version", type=click.IntRange(min=1), help="The newest if not said.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of YAML.")
def show(*, name: str, tenant: str, version: int | None, as_json: bool) -> None:
    """Print the blueprint NAME as YAML."""
    with tenant_scope(tenant_by_schema(tenant)):
        content = published_version(name, version).content
    text = json.dumps(content, indent=2, ensure_ascii=False) if as_json else as_yaml(content)
    click.echo(text.rstrip("\n"))


@blueprints.command()
@click.argument("name")
@click.argument("old", type=click.IntRange(min=1))
@click.argument("new", type=click.IntRange(min=1))
@click.option("--tenant", required=True)
def diff(*, name: str, old: int, new: int, tenant: str) -> None:
    """Print what changed in NAME from version OLD to NEW."""
    with tenant_scope(tenant_by_schema(tenant)):
        changed = diff_of(name, old, new)
    click.echo(changed, nl=False)


def _outlook(document: dict[str, Any], tenant: str) -> str:
    name = document["name"]
    with tenant_scope(tenant_by_schema(tenant)):
        versions = BlueprintVersion.objects.filter(blueprint__name=name).order_by("-number")
        same = versions.filter(content_hash=content_hash(document)).first()
        newest = versions.first()
    if same:
        return f" {tenant} has it as {name}@{same.number}."
    return f" For {tenant} it would become {name}@{newest.number + 1 if newest else 1}."
