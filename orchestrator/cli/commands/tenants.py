"""`isolane tenants`."""

import click
from rich.markup import escape
from rich.table import Table

from executions.services.offboarding import advance_deletion
from foundation.errors import InvalidInput
from orchestrator.cli.support.django import CONSOLE, actor
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import OperatorGroup
from tenants.budgets import Amount
from tenants.isolation import Isolation
from tenants.scope import platform_scope
from tenants.selectors import all_tenants, tenant_by_schema
from tenants.services.tenants import create_tenant, set_status, update_tenant
from tenants.statuses import TenantStatus
from tenants.waiting import wait_until_active, wait_until_gone

MADE_SECONDS = 15.0
WAIT_SECONDS = 120.0


@click.group(cls=OperatorGroup)
def tenants() -> None:
    """Customers: make, list, suspend, resume and delete them."""


@tenants.command()
@click.argument("schema")
@click.option("--name", default="", help="A name for people; the schema's if not said.")
@click.option("--domain", default="", help="Its host name; <schema>.<base host> if not said.")
@click.option(
    "--trusted", is_flag=True, help="May share a process with other trusted tenants' runs."
)
@click.option(
    "--isolation",
    default="shared",
    show_default=True,
    type=click.Choice([level.value for level in Isolation]),
    help="The weakest isolation that its runs may have.",
)
@click.option("--max-running", default=5, show_default=True, help="Runs at the same time.")
@click.option(
    "--reuse-name",
    is_flag=True,
    help="Take the name of a deleted tenant; secrets named env: and file: that it left are the new one's.",
)
def create(
    *,
    schema: str,
    name: str,
    domain: str,
    trusted: bool,
    isolation: str,
    max_running: int,
    reuse_name: bool,
) -> None:
    """Make the tenant SCHEMA: a domain and a quota, then, by a provisioner, a schema and a database role."""
    create_tenant(
        schema=schema,
        name=name,
        domain=domain,
        trusted=trusted,
        required_isolation=Isolation(isolation),
        max_running=max_running,
        reuse_name=reuse_name,
        actor=actor(),
    )
    with CONSOLE.status(f"Waiting for a provisioner to make {schema}"):
        wait_until_active(schema, seconds=MADE_SECONDS)
    click.echo(
        f"Tenant {schema} is ready. Next: isolane api-keys create {schema} --name first --role author"
    )


@tenants.command("set")
@click.argument("schema")
@click.option("--name", default=None, help="A name for people.")
@click.option(
    "--trusted/--untrusted",
    default=None,
    help="May share a process with other trusted tenants' runs.",
)
@click.option("--isolation", default=None, type=click.Choice([level.value for level in Isolation]))
@click.option("--max-running", default=None, type=int, help="Runs at the same time.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="KIND=AMOUNT",
    help="Repeatable; what runs may cost in a calendar month (UTC), such as tokens=1000000. KIND=none removes it.",
)
def set_(
    *,
    schema: str,
    name: str | None,
    trusted: bool | None,
    isolation: str | None,
    max_running: int | None,
    budgets: tuple[str, ...],
) -> None:
    """Change SCHEMA's name, trust, isolation, quota or budget; what is not given stays."""
    update_tenant(
        schema=schema,
        name=name,
        trusted=trusted,
        required_isolation=Isolation(isolation) if isolation else None,
        max_running=max_running,
        budget=dict(_budget(text) for text in budgets),
        actor=actor(),
    )
    click.echo(f"Tenant {schema} is changed.")


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
        "domains",
        "problem",
    )
    with platform_scope():
        for tenant in all_tenants():
            budget = " ".join(
                f"{kind}={most}" for kind, most in sorted(tenant.quota.budget.items())
            )
            domains = " ".join(domain.domain for domain in tenant.domains.all())
            table.add_row(
                tenant.schema_name, tenant.name, tenant.status, "yes" if tenant.trusted else "no",
                tenant.required_isolation, str(tenant.quota.max_running), budget, domains,
                escape(plain(tenant.provisioning_error)),
            )  # fmt: skip
    CONSOLE.print(table)


@tenants.command()
@click.argument("schema")
def suspend(schema: str) -> None:
    """Take no new work for SCHEMA; what runs may end."""
    _set_status(schema, TenantStatus.SUSPENDED)


@tenants.command()
@click.argument("schema")
def resume(schema: str) -> None:
    """Let SCHEMA work again."""
    _set_status(schema, TenantStatus.ACTIVE)


@tenants.command()
@click.argument("schema")
@click.option(
    "--confirm", metavar="SCHEMA", default=None, help="The name again, instead of typing it."
)
@click.option("--wait", is_flag=True, help="Wait until everything is gone.")
def delete(*, schema: str, confirm: str | None, wait: bool) -> None:
    """Stop SCHEMA's runs and drop its data and role, in the background. This cannot be undone."""
    tenant_by_schema(schema)
    if confirm is None:
        confirm = click.prompt(f"This drops everything of {schema}. Type its name to confirm")
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


def _set_status(schema: str, status: TenantStatus) -> None:
    set_status(schema=schema, status=status, actor=actor())
    click.echo(f"Tenant {schema} is {status.label}.")
