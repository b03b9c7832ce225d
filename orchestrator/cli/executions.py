"""`isolane executions`."""

import json
import time
from typing import Any
from uuid import UUID

import click
from rich.table import Table

from executions.api.serializers import ExecutionDetailSerializer
from executions.dispatch import admit_and_send
from executions.models import Step
from executions.selectors import execution, parse_id
from executions.selectors import executions as found
from executions.services.executions import request_cancel
from executions.services.executions import submit as submit_run
from executions.states import TERMINAL_EXECUTION, ExecutionState
from orchestrator.cli.django import CONSOLE, actor
from tenants.scope import TenantRef, tenant_scope
from tenants.selectors import tenant_by_schema

POLL_SECONDS = 0.3


@click.group()
def executions() -> None:
    """Runs of a tenant: submit, list, show and cancel them."""


@executions.command()
@click.argument("blueprint")
@click.option("--tenant", required=True)
@click.option(
    "--input",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Repeatable; VALUE is JSON or text.",
)
@click.option("--version", type=click.IntRange(min=1), help="The newest if not said.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the run's random numbers.")
@click.option(
    "--wait/--no-wait",
    default=False,
    help="Follow the run until it ends and print its last step's output; exit 1 if it fails.",
)
def submit(
    *,
    blueprint: str,
    tenant: str,
    pairs: tuple[str, ...],
    version: int | None,
    seed: int | None,
    wait: bool,
) -> None:
    """Submit a run of BLUEPRINT."""
    ref = tenant_by_schema(tenant)
    inputs = dict(_pair(pair) for pair in pairs)
    run = submit_run(
        tenant=ref,
        blueprint=blueprint,
        inputs=inputs,
        version=version,
        seed=seed,
        requested_by=actor(),
    )
    admit_and_send(bounded=True)
    click.echo(run.public_id)
    if wait:
        _follow(ref, run.public_id)


@executions.command("list")
@click.option("--tenant", required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
def list_(tenant: str, limit: int) -> None:
    """List a tenant's runs, newest first."""
    table = Table("execution", "blueprint", "state", "steps", "code", "worker", "created")
    with tenant_scope(tenant_by_schema(tenant)):
        for run in found()[:limit]:
            table.add_row(
                run.public_id, str(run.blueprint_version), run.state, f"{run.steps_done}/{run.steps_total}",
                run.code, run.worker, f"{run.created_at:%Y-%m-%d %H:%M:%S}",
            )  # fmt: skip
    CONSOLE.print(table)


@executions.command()
@click.argument("execution_id")
@click.option("--tenant", required=True)
def show(execution_id: str, tenant: str) -> None:
    """Show a run with its steps, as JSON."""
    with tenant_scope(tenant_by_schema(tenant)):
        body = ExecutionDetailSerializer(execution(execution_id)).data
    _print_json(body)


@executions.command()
@click.argument("execution_id")
@click.option("--tenant", required=True)
def cancel(execution_id: str, tenant: str) -> None:
    """Ask a run to stop."""
    with tenant_scope(tenant_by_schema(tenant)):
        state = request_cancel(parse_id(execution_id), actor=actor())
    click.echo("Cancelled." if state == "cancelled" else "Asked to stop; it ends within seconds.")


def _pair(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="--input")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _follow(ref: TenantRef, public_id: str) -> None:
    with CONSOLE.status("queued") as line:
        while True:
            with tenant_scope(ref):
                run = execution(public_id)
            line.update(f"{run.state}: step {run.steps_done} of {run.steps_total} {run.next_step}")
            if run.state in TERMINAL_EXECUTION:
                break
            time.sleep(POLL_SECONDS)
    click.echo(f"{run.state} {run.code} {run.message}".strip())
    if run.state != ExecutionState.SUCCEEDED:
        raise SystemExit(1)
    _print_json(_last_output(ref, run.pk))


def _last_output(ref: TenantRef, run: UUID) -> Any:
    with tenant_scope(ref):
        outputs = Step.objects.filter(execution_id=run).order_by("-position")
        return outputs.values_list("output", flat=True).first()


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
