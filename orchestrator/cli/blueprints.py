"""`isolane blueprints`."""

from pathlib import Path

import click
from rich.table import Table

from executions.blueprint.reading import parse
from executions.selectors import blueprints as found
from executions.services.blueprints import publish
from orchestrator.cli.django import CONSOLE
from orchestrator.core.errors import InvalidInput
from tenants.scope import tenant_scope
from tenants.selectors import tenant_by_schema


@click.group()
def blueprints() -> None:
    """Workflows of a tenant: publish and list them."""


@blueprints.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tenant", required=True)
def push(file: Path, tenant: str) -> None:
    """Check FILE (YAML or JSON) and publish it as the next version."""
    document = parse(_text(file))
    with tenant_scope(tenant_by_schema(tenant)):
        published = publish(document)
    news = "published" if published.is_new else "unchanged"
    click.echo(f"{published.name}@{published.number} {news} for {tenant}.")


@blueprints.command("list")
@click.option("--tenant", required=True)
def list_(tenant: str) -> None:
    """List a tenant's blueprints."""
    table = Table("blueprint", "versions", "created")
    with tenant_scope(tenant_by_schema(tenant)):
        for blueprint in found():
            table.add_row(
                blueprint.name,
                str(blueprint.versions.count()),
                f"{blueprint.created_at:%Y-%m-%d %H:%M}",
            )
    CONSOLE.print(table)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not text in UTF-8; save it as such.", field="file") from None
