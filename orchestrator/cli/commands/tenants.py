"""`isolane tenants`."""

import click
from rich.markup import escape
from rich.table import Table

from executions.explain.tenant_level import level_note
from executions.services.offboarding import advance_deletion
from foundation.errors import InvalidInput
from foundation.limit_bounds import Number, number
from orchestrator.cli.support.django import CONSOLE, actor
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import OperatorGroup
from tenants.budgets import Amount
from tenants.isolation import Isolation
from tenants.run_limits import QUOTA_LIMITS
from tenants.scope import platform_scope
from tenants.selectors import all_tenants, tenant_by_schema
from tenants.services.tenants import create_tenant, set_status, update_tenant
from tenants.statuses import TenantStatus
from tenants.waiting import wait_until_active, wait_until_gone

CREATION_SECONDS = 15.0
WAIT_SECONDS = 120.0


@click.group(cls=OperatorGroup)
def tenants() -> None:
    """Create, list, change, suspend, resume and delete tenants."""


@tenants.command()
@click.argument("schema")
@click.option("--name", default="", help="Name for people. Default: SCHEMA.")
@click.option("--domain", default="", help="Host name of the tenant. Default: SCHEMA.<base host>.")
@click.option(
    "--trusted",
    is_flag=True,
    help="Allow its runs the level shared, where they are the worker's user: for code that you would run yourself. Runs"
    " of an untrusted tenant have process or a stricter level.",
)
@click.option(
    "--isolation",
    default=None,
    type=click.Choice([level.value for level in Isolation]),
    help="The weakest isolation level for its runs. Default: process; with --trusted: shared.",
)
@click.option("--max-running", default=5, show_default=True, help="Most runs at the same time.")
@click.option(
    "--reuse-name",
    is_flag=True,
    help="Allow the name of a deleted tenant; the new one gets its secrets env: and file:, unless you removed them.",
)
def create(
    *,
    schema: str,
    name: str,
    domain: str,
    trusted: bool,
    isolation: str | None,
    max_running: int,
    reuse_name: bool,
) -> None:
    """Create the tenant SCHEMA: a domain, a quota, a schema and a database role.

    A provisioner creates schema and role; the command waits for it, at most 15 seconds. Then it says which isolation
    level the tenant's runs get from the workers as they are now, and why, or warns that they get none.
    """
    create_tenant(
        schema=schema,
        name=name,
        domain=domain,
        trusted=trusted,
        required_isolation=Isolation(isolation) if isolation else None,
        max_running=max_running,
        reuse_name=reuse_name,
        actor=actor(),
    )
    click.echo(f"Waiting for a provisioner to create schema and role of {schema}", err=True)
    wait_until_active(schema, seconds=CREATION_SECONDS)
    click.echo(
        f"Tenant {schema} is ready. Next: isolane api-keys create {schema} --name first --role author"
    )
    _tell_level(schema)


@tenants.command("set")
@click.argument("schema")
@click.option("--name", default=None, help="Name for people.")
@click.option(
    "--trusted/--untrusted",
    default=None,
    help="Allow its runs the level shared, where they are the worker's user, or no longer. They get it if --isolation"
    " is shared, too.",
)
@click.option(
    "--isolation",
    default=None,
    type=click.Choice([level.value for level in Isolation]),
    help="The weakest isolation level for its runs.",
)
@click.option("--max-running", default=None, type=int, help="Most runs at the same time.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="KIND=AMOUNT",
    help="Most that runs may cost in a calendar month (UTC), such as tokens=1000000; KIND=none removes it. Repeatable.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"Most that one run may use, such as ram_mb=2048: {', '.join(QUOTA_LIMITS)}; NAME=none is the platform's"
    " default. Repeatable.",
)
def set_(
    *,
    schema: str,
    name: str | None,
    trusted: bool | None,
    isolation: str | None,
    max_running: int | None,
    budgets: tuple[str, ...],
    limits: tuple[str, ...],
) -> None:
    """Change name, trust, isolation, quota, budget or limits of the tenant SCHEMA; omitted options stay as they are.

    Trust and isolation count for runs that are submitted from now on; the command says which level these get.
    """
    update_tenant(
        schema=schema,
        name=name,
        trusted=trusted,
        required_isolation=Isolation(isolation) if isolation else None,
        max_running=max_running,
        budget=dict(_budget(text) for text in budgets),
        limits=dict(_limit(text) for text in limits),
        actor=actor(),
    )
    click.echo(f"Tenant {schema} is changed.")
    if trusted is not None or isolation:
        _tell_level(schema)


@tenants.command("list")
def list_() -> None:
    """List all tenants."""
    table = Table(
        "tenant",
        "name",
        "status",
        "trusted",
        "isolation",
        "max running",
        "budget",
        "limits",
        "domains",
        "problem",
    )
    with platform_scope():
        for tenant in all_tenants():
            budget = " ".join(
                f"{kind}={most}" for kind, most in sorted(tenant.quota.budget.items())
            )
            limits = " ".join(f"{name}={most:g}" for name, most in tenant.quota.limits.items())
            domains = " ".join(domain.domain for domain in tenant.domains.all())
            table.add_row(
                tenant.schema_name, tenant.name, tenant.status, "yes" if tenant.trusted else "no",
                tenant.required_isolation, str(tenant.quota.max_running), budget, limits, domains,
                escape(plain(tenant.provisioning_error)),
            )  # fmt: skip
    CONSOLE.print(table)


@tenants.command()
@click.argument("schema")
def suspend(schema: str) -> None:
    """Accept no new runs for the tenant SCHEMA; running ones may end."""
    _set_status(schema, TenantStatus.SUSPENDED)


@tenants.command()
@click.argument("schema")
def resume(schema: str) -> None:
    """Accept runs for the tenant SCHEMA again."""
    _set_status(schema, TenantStatus.ACTIVE)


@tenants.command()
@click.argument("schema")
@click.option(
    "--confirm", metavar="SCHEMA", default=None, help="SCHEMA again, to confirm without a prompt."
)
@click.option("--wait", is_flag=True, help="Wait until everything is gone.")
def delete(*, schema: str, confirm: str | None, wait: bool) -> None:
    """Stop the runs of the tenant SCHEMA and delete its data and role, in the background. This cannot be undone."""
    tenant_by_schema(schema)
    if confirm is None:
        confirm = click.prompt(f"This deletes everything of {schema}. Type its name to confirm")
    if confirm != schema:
        raise click.ClickException(f"Nothing was deleted: {confirm!r} is not {schema!r}.")
    _set_status(schema, TenantStatus.DELETING)
    if wait:
        with CONSOLE.status(f"Stopping {schema}'s runs and dropping its data"):
            wait_until_gone(schema, advance_deletion, seconds=WAIT_SECONDS)
        click.echo(f"Tenant {schema} is gone.")


def _budget(text: str) -> tuple[str, Amount | None]:
    kind, _, amount = text.partition("=")
    if amount == "none":
        return kind, None
    try:
        return kind, int(amount) if amount.isdecimal() else float(amount)
    except ValueError:
        raise InvalidInput(
            f"budget {text!r} is not KIND=AMOUNT, such as tokens=1000000, nor KIND=none.",
            field="budget",
        ) from None


def _limit(text: str) -> tuple[str, Number | None]:
    name, _, value = text.partition("=")
    if value == "none":
        return name, None
    if (most := number(value)) is None:
        raise InvalidInput(
            f"limit {text!r} is not NAME=NUMBER, such as ram_mb=2048, nor NAME=none.", field="limit"
        )
    return name, most


def _set_status(schema: str, status: TenantStatus) -> None:
    set_status(schema=schema, status=status, actor=actor())
    click.echo(f"Tenant {schema} is {status.label}.")


def _tell_level(schema: str) -> None:
    """Print the level that new runs of the tenant get, or warn that they get none now; on standard error."""
    note = level_note(schema)
    if note.is_warning:
        click.secho(f"Warning: {note.text}", fg="yellow", err=True)
    else:
        click.echo(note.text, err=True)
