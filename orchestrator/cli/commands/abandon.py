"""`isolane resources abandon`: give up a leftover credential that cannot be revoked."""

import click

from executions.services.abandoned_resources import abandon_leftover
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.platform import PlatformCommand
from tenants.roles import Permission


@click.command(cls=PlatformCommand)
@click.argument("resource_id")
@tenant_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def abandon(*, resource_id: str, tenant: str, api_key: str | None, yes: bool) -> None:
    """Stop trying to revoke RESOURCE_ID, a leftover credential of a run that has ended.

    Use this if the remote server is gone for good. The credential may still exist there, for the customer to remove.
    'isolane executions unclean' lists the leftovers.
    """
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.RESOURCE_EDIT)
    if not yes:
        click.confirm(
            f"Give up {resource_id}? It may still exist on the remote server.", abort=True
        )
    abandon_leftover(identity.tenant, resource_id, actor=identity.name)
    click.echo("Given up.")
