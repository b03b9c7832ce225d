"""`isolane executions resources` and `unclean`: the ledger of runs, and leftovers."""

import json

import click
from rich.markup import escape
from rich.table import Table

from executions.api.serializers.resource_records import (
    BalanceSerializer,
    LeftoverSerializer,
    ResourceRecordSerializer,
)
from executions.selectors.executions import find_execution
from executions.selectors.resource_records import balance, count_runs, records, unclosed_records
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import PlatformCommand
from tenants.scope import tenant_scope

LISTED = 1000


@click.command(cls=PlatformCommand)
@click.argument("execution_id")
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def resources(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print the ledger of the run EXECUTION_ID: every connection, client and credential, and how each ended.

    Exit 1 if the run is not clean: something that was allocated still exists.
    """
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        rows = ResourceRecordSerializer(records(run), many=True).data
        total = balance(run)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, default=str))
        click.echo(json.dumps(BalanceSerializer(total).data))
    else:
        table = Table(
            "resource", "type", "definition", "step", "epoch", "ended", "seconds", "error"
        )
        for row in rows:
            seconds = "" if row["duration_s"] is None else f"{row['duration_s']:.3f}"
            cells = (
                row["resource_id"], row["type"], row["definition"], row["step"], str(row["epoch"]),
                row["ended"] or "open", seconds, row["error"],
            )  # fmt: skip
            table.add_row(*(escape(plain(cell)) for cell in cells))
        CONSOLE.print(table)
        verdict = "clean" if total.is_clean else "not clean"
        click.echo(
            f"{verdict}: {total.allocated} allocated, {total.disposed} gone, {total.open} open"
        )
    if not total.is_clean:
        raise SystemExit(1)


@click.command("unclean", cls=PlatformCommand)
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def list_unclean(*, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Count the runs that have ended and still have something on a remote server, and list it.

    Normally there are none. Workers keep trying to revoke the leftovers. Exit 1 if there are any.
    """
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        leftovers = unclosed_records(identity.reach)
        rows = LeftoverSerializer(leftovers[:LISTED], many=True).data
        total = count_runs(leftovers)
    for row in rows:
        if as_json:
            click.echo(json.dumps(row, default=str))
        else:
            words = (row["execution_id"], row["type"], row["resource_id"], row["error"])
            click.echo(plain(" ".join(words).rstrip()))
    if not as_json:
        click.echo(f"{total} unclean")
    if total:
        raise SystemExit(1)
