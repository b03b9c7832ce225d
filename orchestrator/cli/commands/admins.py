"""`isolane admins`."""

import click

from orchestrator.cli.support.django import actor
from orchestrator.cli.support.platform import OperatorGroup
from tenants.services.users import create_admin, set_admin_password


@click.group(cls=OperatorGroup)
def admins() -> None:
    """Create administrators of the platform and set their passwords."""


@admins.command()
@click.argument("username")
@click.password_option(help="Better omitted: the password is then asked for, without echo.")
def create(*, username: str, password: str) -> None:
    """Create the administrator USERNAME, also the first one of a new platform."""
    create_admin(username=username, password=password, actor=actor())
    click.echo(f"{username} can sign in at /admin/.")


@admins.command()
@click.argument("username")
@click.password_option(help="Better omitted: the password is then asked for, without echo.")
def password(*, username: str, password: str) -> None:
    """Set a new password for the administrator USERNAME, and end all sessions."""
    set_admin_password(username=username, password=password, actor=actor())
    click.echo(f"{username} has a new password, and is signed out everywhere.")
