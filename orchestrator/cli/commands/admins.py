"""`isolane admins`."""

import click

from orchestrator.cli.support.django import actor
from orchestrator.cli.support.platform import OperatorGroup
from tenants.services.users import create_admin, set_admin_password


@click.group(cls=OperatorGroup)
def admins() -> None:
    """People who administer the platform at /admin/."""


@admins.command()
@click.argument("username")
@click.password_option(help="Asked for without echo if not said, which is better.")
def create(*, username: str, password: str) -> None:
    """Make the administrator USERNAME; also the first one of a new platform."""
    create_admin(username=username, password=password, actor=actor())
    click.echo(f"{username} can sign in at /admin/.")


@admins.command()
@click.argument("username")
@click.password_option(help="Asked for without echo if not said, which is better.")
def password(*, username: str, password: str) -> None:
    """Set another password for the administrator USERNAME, who forgot the old one."""
    set_admin_password(username=username, password=password, actor=actor())
    click.echo(f"{username} has another password, and is signed out everywhere.")
