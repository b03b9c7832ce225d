"""`isolane secrets`: values are read from a prompt, a file or standard input, never from the command line."""

import json
import sys
from pathlib import Path

import click
from rich.table import Table

from executions.services.rotation import rotate as rotations
from orchestrator.cli.support.django import CONSOLE, actor
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import FILE, read_text
from orchestrator.cli.support.platform import OperatorCommand, PlatformGroup
from resources.api.serializers.secrets import SecretSerializer
from resources.selectors import all_secrets
from resources.services.names import check_name
from resources.services.rotation import Rotated
from resources.services.secrets import delete_secret, put_secret
from tenants.roles import Permission
from tenants.scope import tenant_scope

EXIT_INCOMPLETE = 1


@click.group(cls=PlatformGroup)
def secrets() -> None:
    """Set, list and delete secrets of a tenant: stored encrypted, never shown again."""


@secrets.command("list")
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def list_(*, tenant: str, api_key: str | None, as_json: bool) -> None:
    """List the names of a tenant's secrets, without values."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        rows = SecretSerializer(all_secrets(), many=True).data
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    table = Table("secret", "version", "set", "by")
    for row in rows:
        table.add_row(row["name"], str(row["version"]), row["updated_at"][:19], row["updated_by"])
    CONSOLE.print(table)


@secrets.command("set")
@click.argument("name")
@tenant_options
@click.option(
    "--from-file", type=FILE, help="Read the value from this file, without the last newline."
)
def set_(*, name: str, tenant: str, api_key: str | None, from_file: Path | None) -> None:
    """Set the secret NAME; prompts for the value, or reads standard input if it is not a terminal."""
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.SECRET_EDIT)
    check_name(name)
    secret = put_secret(identity.tenant, name, _value(from_file), actor=identity.name)
    click.echo(f"Secret {name} of {tenant} is set (version {secret.version}).")


@secrets.command()
@click.argument("name")
@tenant_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(*, name: str, tenant: str, api_key: str | None, yes: bool) -> None:
    """Delete the secret NAME; refused while a definition refers to it."""
    identity = CommandIdentity(tenant, api_key)
    identity.require_tenant_wide(Permission.SECRET_EDIT)
    if not yes:
        click.confirm(f"Delete the secret {name} of {tenant}? This cannot be undone.", abort=True)
    delete_secret(identity.tenant, name, actor=identity.name)
    click.echo(f"Secret {name} of {tenant} is deleted.")


@secrets.command(cls=OperatorCommand)
@click.pass_context
def rotate(ctx: click.Context) -> None:
    """Encrypt all sealed values of every tenant with the newest of ENCRYPTION_KEYS; the platform may run.

    After exit code 0 the older keys can be removed. The command can be repeated at any time.
    """
    total = Rotated()
    for progress in rotations(actor=actor()):
        total += progress.result
        click.echo(
            f"[{progress.done}/{progress.total}] {progress.tenant}: {progress.result.rotated} rotated,"
            f" {progress.result.current} current"
        )
    click.echo(
        f"{total.rotated} values were rotated to the newest key; {total.current} had it before."
    )
    if total.changed:
        click.echo(f"{total.changed} changed meanwhile: run the command again.", err=True)
    if total.unreadable:
        click.echo(
            f"{total.unreadable} cannot be decrypted with any of ENCRYPTION_KEYS: add the key that they were"
            " encrypted with, and run the command again.",
            err=True,
        )
    if not total.is_complete:
        ctx.exit(EXIT_INCOMPLETE)


def _value(file: Path | None) -> str:
    if file is not None:
        return _without_newline(read_text(file))
    if _is_terminal():
        typed: str = click.prompt("Value", hide_input=True, confirmation_prompt=True)
        return typed
    return _without_newline(sys.stdin.read())


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _without_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
