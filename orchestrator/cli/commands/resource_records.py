"""`isolane executions resources` and `unclean`: what runs had of their resources, and what is left of it."""

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
from orchestrator.cli.support.identity import Viewer, tenant_options
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import PlatformCommand
from tenants.scope import tenant_scope

LISTED = 1000


@click.command(cls=PlatformCommand)
@click.argument("execution_id")
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def resources(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print every connection, client and credential that a run had, and how each ended.

    Exit 1 if the run is not clean: something that was allocated is still there.
    """
    viewer = Viewer(tenant, api_key)
    with tenant_scope(viewer.tenant):
        run = find_execution(execution_id, viewer.reach)
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
        said = "clean" if total.is_clean else "not clean"
        click.echo(f"{said}: {total.allocated} allocated, {total.disposed} gone, {total.open} open")
    if not total.is_clean:
        raise SystemExit(1)


@click.command("unclean", cls=PlatformCommand)
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def list_unclean(*, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Count and list the runs that have ended and still have something at a far side.

    Normally there are none. Workers go on trying to revoke what is left. Exit 1 if there are any.
    """
    viewer = Viewer(tenant, api_key)
    with tenant_scope(viewer.tenant):
        left = unclosed_records(viewer.reach)
        rows = LeftoverSerializer(left[:LISTED], many=True).data
        total = count_runs(left)
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
