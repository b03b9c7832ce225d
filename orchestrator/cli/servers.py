"""`isolane migrate`, `isolane provisioner` and `isolane flower`: single processes for production."""

import os
import signal
from pathlib import Path

import click
from django.conf import settings

from orchestrator.cli.platform import PlatformCommand
from orchestrator.cli.texts import plain
from orchestrator.core.errors import Unavailable
from orchestrator.flower import serve
from tenants.exposure import exposures
from tenants.provisioner import Provisioner
from tenants.provisioning import migrate as migrate_all


@click.command(cls=PlatformCommand)
def migrate() -> None:
    """Bring public, the template and every tenant's schema up to date (needs DATABASE_OWNER_URL).

    Provisioners that run help with the tenants. A tenant that fails keeps no other waiting; exit 1 if one did.
    """
    failed = migrate_all(lambda schema: click.echo(f"  {schema}"))
    for sentence in exposures():
        click.secho(f"Warning: {sentence}", fg="yellow", err=True)
    for one in failed:
        click.secho(f"  {one.schema}: {plain(one.error)}", fg="red", err=True)
    if failed:
        raise click.ClickException(
            f"{len(failed)} tenants could not be migrated; all others are up to date. Mend the cause and run it "
            "again; provisioners that run try again, too."
        )
    click.echo("All schemas are up to date.")


@click.command(cls=PlatformCommand)
def provisioner() -> None:
    """Make, migrate and delete tenants' schemas and roles until stopped (needs DATABASE_OWNER_URL).

    Any number may run: each takes tenants that no other holds. SIGTERM ends it after the tenant it is at.
    """
    ready_file = settings.ENV.ready_file

    def on_ready() -> None:
        if ready_file:
            Path(ready_file).write_text(f"{os.getpid()} ", encoding="utf-8")

    process = Provisioner(on_ready)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()


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
