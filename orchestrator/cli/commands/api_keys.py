"""`isolane api-keys`."""

import click
from rich.table import Table

from orchestrator.cli.support.django import CONSOLE, actor
from orchestrator.cli.support.platform import OperatorGroup
from tenants.models import ApiKey
from tenants.roles import Role
from tenants.selectors import tenant_by_schema
from tenants.services.api_keys import create_api_key, revoke_api_key


@click.group("api-keys", cls=OperatorGroup)
def api_keys() -> None:
    """Create, list and revoke API keys: credentials of programs, each for one tenant."""


@api_keys.command()
@click.argument("tenant")
@click.option("--name", required=True, help="Name of the key, for people.")
@click.option(
    "--role",
    default="operator",
    show_default=True,
    type=click.Choice(["viewer", "operator", "author", "admin"]),
    help="Role that gives the key its permissions.",
)
@click.option(
    "--blueprint",
    "blueprints",
    multiple=True,
    metavar="NAME",
    help="Limit the key to this blueprint; repeatable. Default: all blueprints.",
)
def create(*, tenant: str, name: str, role: str, blueprints: tuple[str, ...]) -> None:
    """Create a key for TENANT and print it; it cannot be shown again."""
    key = create_api_key(
        tenant=tenant_by_schema(tenant),
        name=name,
        role=Role(role),
        blueprints=blueprints or None,
        actor=actor(),
    )
    click.echo(key)


@api_keys.command("list")
@click.argument("tenant")
def list_(tenant: str) -> None:
    """List the keys of TENANT; only the first characters of each are stored."""
    table = Table("key", "name", "role", "blueprints", "created", "expires", "revoked")
    for key in ApiKey.objects.filter(tenant_id=tenant_by_schema(tenant).id).order_by("created_at"):
        times = (key.created_at, key.expires_at, key.revoked_at)
        table.add_row(
            key.hint + "…",
            key.name,
            key.role,
            "all" if key.blueprints is None else " ".join(key.blueprints),
            *(f"{at:%Y-%m-%d %H:%M}" if at else "" for at in times),
        )
    CONSOLE.print(table)


@api_keys.command()
@click.argument("tenant")
@click.argument("hint")
def revoke(tenant: str, hint: str) -> None:
    """Revoke the key of TENANT that begins with HINT, at once."""
    revoke_api_key(tenant=tenant_by_schema(tenant), hint=hint.rstrip("…"), actor=actor())
    click.echo(f"Key {hint} is revoked.")
