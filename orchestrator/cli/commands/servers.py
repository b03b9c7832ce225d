"""`isolane migrate` and `isolane provisioner`: processes that change schemas."""

import signal

import click
from django.conf import settings

from foundation.ready_file import write_ready_file
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import OwnerCommand
from tenants.exposure import exposures
from tenants.provisioner import Provisioner
from tenants.provisioning import migrate as migrate_all


@click.command(cls=OwnerCommand)
def migrate() -> None:
    """Migrate public, the template and the schema of every tenant (needs DATABASE_OWNER_URL).

    Running provisioners help with the tenants. A tenant that fails does not block the others. Exit 1 if one failed.
    """
    failed = migrate_all(lambda schema: click.echo(f"  {schema}"))
    for sentence in exposures():
        click.secho(f"Warning: {sentence}", fg="yellow", err=True)
    for one in failed:
        click.secho(f"  {one.schema}: {plain(one.error)}", fg="red", err=True)
    if failed:
        raise click.ClickException(
            f"{len(failed)} tenants could not be migrated; all others are up to date. Fix the cause and run the "
            "command again; running provisioners retry, too."
        )
    click.echo("All schemas are up to date.")


@click.command(cls=OwnerCommand)
def provisioner() -> None:
    """Create, migrate and delete schemas and roles of tenants until stopped (needs DATABASE_OWNER_URL).

    Any number may run: each takes tenants that no other has taken. SIGTERM ends it after the current tenant.
    """
    process = Provisioner(lambda: write_ready_file(settings.ENV.ready_file))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()
