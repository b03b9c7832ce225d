"""`isolane migrate` and `isolane flower`: single processes for production."""

import click
from django.conf import settings

from orchestrator.cli.platform import PlatformCommand
from orchestrator.core.errors import Unavailable
from orchestrator.flower import serve
from tenants.provisioning import migrate as migrate_all


@click.command(cls=PlatformCommand)
def migrate() -> None:
    """Bring public, the template and every tenant's schema up to date (needs DATABASE_OWNER_URL)."""
    migrate_all(lambda schema: click.echo(f"  {schema}"))
    click.echo("All schemas are up to date.")


@click.command(cls=PlatformCommand)
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=5555, show_default=True, type=click.IntRange(1, 65535))
def flower(address: str, port: int) -> None:
    """Serve Flower: login required, read-only, without its unprotected pages."""
    if not settings.ENV.flower_password:
        raise Unavailable("FLOWER_PASSWORD is not set; Flower is not served without a login.")
    serve(
        address=address,
        port=port,
        user=settings.ENV.flower_user,
        password=settings.ENV.flower_password,
        cookie_secret=settings.SECRET_KEY,
    )
