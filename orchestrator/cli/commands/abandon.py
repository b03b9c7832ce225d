"""`isolane resources abandon`: giving up what cannot be revoked."""

import click

from executions.services.abandoned_resources import abandon_leftover
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.platform import PlatformCommand
from tenants.roles import Permission


@click.command(cls=PlatformCommand)
@click.argument("resource_id")
@tenant_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def abandon(*, resource_id: str, tenant: str, api_key: str | None, yes: bool) -> None:
    """Have the workers try no longer to revoke RESOURCE_ID, which a run that has ended left at a far side.

    For a server that is gone for good: 'isolane executions unclean' lists what is left. It may still exist there,
    for the customer to remove.
    """
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.RESOURCE_EDIT)
    if not yes:
        click.confirm(f"Give {resource_id} up? It may still exist at the far side.", abort=True)
    abandon_leftover(identity.tenant, resource_id, actor=identity.name)
    click.echo("Given up.")
