"""`isolane executions`.

An operator sees states, codes and times. Inputs, outputs and logs are data of the tenant: they are shown to the owner
of an API key with the permission to view them, as over HTTP.

Timing: request-time; following a run polls it.
Model: sync.
Guarantee: as the service's.
Failure: bubble, as one line.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import click
from rich.table import Table

from executions.api.serializers.executions import ExecutionDetailSerializer
from executions.api.serializers.history import CostSerializer, EventSerializer, LogSerializer
from executions.api.withholding import event_without_data, run_without_data
from executions.blueprints.amounts import amount_text
from executions.models import Execution, StepLog
from executions.placement.dispatch import admit_and_send
from executions.selectors.executions import execution, find_execution, labelled, last_step
from executions.selectors.executions import executions as found
from executions.selectors.history import cost_totals
from executions.selectors.history import costs as found_costs
from executions.selectors.history import events as found_events
from executions.selectors.history import logs as found_logs
from executions.states import TERMINAL_EXECUTION, ExecutionState
from executions.submission.cancel import request_cancel
from executions.submission.replay import replay as replay_run
from executions.submission.submit import RunRequest, Submitted
from executions.submission.submit import submit as submit_run
from orchestrator.cli.commands.resource_records import list_unclean, resources
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import HINT, CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import hint_at_quotes, input_pair, plain
from orchestrator.cli.support.platform import PlatformGroup
from tenants.roles import Permission
from tenants.scope import tenant_scope

POLL_SECONDS = 0.3
ANSWER = "isolane approvals list --tenant"
BATCH = 500  # log lines or events that are read at once


idempotency_key_option = click.option(
    "--idempotency-key",
    default="",
    metavar="KEY",
    help="A repeated key with the same request returns the run that it created.",
)

wait_option = click.option(
    "--wait/--no-wait",
    default=False,
    help="Wait for the end of the run and print its outputs; exit 1 if it does not succeed.",
)


@click.group(cls=PlatformGroup)
def executions() -> None:
    """Submit, replay, cancel, list and show runs of a tenant."""


executions.add_command(resources)
executions.add_command(list_unclean)


# --- acting
@executions.command()
@click.argument("blueprint")
@tenant_options
@click.option(
    "--input",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An input; VALUE is JSON or text. Repeatable.",
)
@click.option("--version", type=click.IntRange(min=1), help="Default: the newest.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the run's random numbers.")
@idempotency_key_option
@wait_option
def submit(
    *,
    blueprint: str,
    tenant: str,
    api_key: str | None,
    pairs: tuple[str, ...],
    version: int | None,
    seed: int | None,
    idempotency_key: str,
    wait: bool,
) -> None:
    """Submit a run of BLUEPRINT and print its id."""
    identity = CommandIdentity(tenant, api_key)
    identity.require(Permission.EXECUTION_RUN, blueprint)
    request = RunRequest(
        blueprint=blueprint,
        inputs=dict(input_pair(pair) for pair in pairs),
        version=version,
        seed=seed,
        requested_by=identity.name,
        idempotency_key=idempotency_key,
    )
    with hint_at_quotes():
        submitted = submit_run(identity.tenant, request)
    _started(identity, submitted, wait=wait)


@executions.command()
@click.argument("execution_id")
@tenant_options
@idempotency_key_option
@wait_option
def replay(
    *, execution_id: str, tenant: str, api_key: str | None, idempotency_key: str, wait: bool
) -> None:
    """Submit the run EXECUTION_ID again with the same version, seed and inputs, and print the new id.

    Steps that are declared deterministic must give the same output again.
    """
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        original = find_execution(execution_id, identity.reach)
    identity.require(Permission.EXECUTION_RUN, _blueprint(original))
    submitted = replay_run(
        identity.tenant, original.pk, requested_by=identity.name, idempotency_key=idempotency_key
    )
    _started(identity, submitted, wait=wait)


@executions.command()
@click.argument("execution_id")
@tenant_options
def cancel(execution_id: str, tenant: str, api_key: str | None) -> None:
    """Request that the run EXECUTION_ID stops."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        identity.require(Permission.EXECUTION_CANCEL, _blueprint(run))
        state = request_cancel(run.pk, actor=identity.name)
    click.echo(
        "Cancelled."
        if state == "cancelled"
        else "Cancellation requested; the run ends within seconds."
    )


# --- reading
@executions.command("list")
@tenant_options
@click.option("--state", type=click.Choice(ExecutionState.values), help="Only runs in this state.")
@click.option("--blueprint", help="Only runs of this blueprint.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY:VALUE",
    help="Only runs with this label. Repeatable.",
)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Most rows."
)
def list_(
    *,
    tenant: str,
    api_key: str | None,
    state: str | None,
    blueprint: str | None,
    labels: tuple[str, ...],
    limit: int,
) -> None:
    """List the runs of a tenant, the newest first."""
    identity = CommandIdentity(tenant, api_key)
    runs = found(identity.reach)
    if state:
        runs = runs.filter(state=state)
    if blueprint:
        runs = runs.filter(blueprint_version__blueprint__name=blueprint)
    for label in labels:
        runs = labelled(runs, label)
    table = Table("execution", "blueprint", "state", "steps", "code", "worker", "created")
    with tenant_scope(identity.tenant):
        for run in runs[:limit]:
            table.add_row(
                run.public_id, str(run.blueprint_version), run.state, f"{run.steps_done}/{run.steps_total}",
                run.code, run.worker, f"{run.created_at:%Y-%m-%d %H:%M:%S}",
            )  # fmt: skip
    CONSOLE.print(table)


@executions.command()
@click.argument("execution_id")
@tenant_options
def show(execution_id: str, tenant: str, api_key: str | None) -> None:
    """Show a run with its steps, as JSON."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        found_run = execution(execution_id, identity.reach)
    body: dict[str, Any] = ExecutionDetailSerializer(found_run).data
    if not identity.sees_data(body["blueprint"]):
        click.echo(HINT, err=True)
        body = run_without_data(body)
    _print_json(body)


@executions.command()
@click.argument("execution_id")
@tenant_options
@click.option(
    "--after", default=0, type=click.IntRange(min=0), help="Number of the last event already read."
)
def events(execution_id: str, tenant: str, api_key: str | None, after: int) -> None:
    """Print the events of the run EXECUTION_ID, one JSON object per line."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        sees_data = identity.sees_data(_blueprint(run))
        while batch := list(found_events(run, after=after)[:BATCH]):
            for event in EventSerializer(batch, many=True).data:
                # ASCII, so that no value can control the terminal.
                shown = event if sees_data else event_without_data(event)
                click.echo(json.dumps(shown, default=str))
            after = batch[-1].sequence
    if not sees_data:
        click.echo(HINT, err=True)


@executions.command()
@click.argument("execution_id")
@tenant_options
@click.option("--step", default="", help="Only log lines of this step.")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the run has ended.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def logs(
    *,
    execution_id: str,
    tenant: str,
    api_key: str | None,
    step: str,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the log lines of the run EXECUTION_ID. Sensitive values are masked."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        identity.require_data(_blueprint(run))
    for line in _lines(identity, run, step=step, follow=follow):
        if as_json:
            body = LogSerializer(line, context={"tenant_id": identity.tenant.schema}).data
            click.echo(json.dumps(body, default=str))
            continue
        where = f"{line.step}#{line.attempt}"
        click.echo(f"{line.at:%H:%M:%S} {where} {line.level} {plain(line.message)}")


@executions.command()
@click.argument("execution_id")
@tenant_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def costs(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print the costs of each attempt in the run EXECUTION_ID, and the totals."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        found = CostSerializer(found_costs(run), many=True).data
        totals = cost_totals(run)
    if as_json:
        for record in found:
            click.echo(json.dumps(record, default=str))
        return
    table = Table("step", "attempt", "kind", "amount")
    for record in found:
        table.add_row(record["step"], str(record["attempt"]), record["kind"], record["amount"])
    CONSOLE.print(table)
    for kind, amount in totals.items():
        click.echo(f"{kind}: {amount_text(amount)}")


def _started(identity: CommandIdentity, submitted: Submitted, *, wait: bool) -> None:
    if not submitted.is_new:
        click.echo(
            "The idempotency key was used before; this is the run that it created.", err=True
        )
    admit_and_send(bounded=True)
    click.echo(submitted.execution.public_id)
    if wait:
        _follow(identity, submitted.execution.public_id)


def _follow(identity: CommandIdentity, public_id: str) -> None:
    asked = ""
    with CONSOLE.status("queued") as line:
        while True:
            with tenant_scope(identity.tenant):
                run = execution(public_id)
            if run.state == ExecutionState.SUSPENDED and run.next_step != asked:
                asked = run.next_step
                click.echo(f"{asked} asks a person: {ANSWER} {identity.tenant.schema}", err=True)
            line.update(f"{run.state}: step {run.steps_done} of {run.steps_total} {run.next_step}")
            if run.state in TERMINAL_EXECUTION:
                break
            time.sleep(POLL_SECONDS)
    if not identity.sees_data(_blueprint(run)):
        click.echo(f"{run.state} {run.code}".strip())
        click.echo(HINT, err=True)
    else:
        click.echo(f"{run.state} {run.code} {plain(run.message)}".strip())
    if run.state != ExecutionState.SUCCEEDED:
        raise SystemExit(1)
    if identity.sees_data(_blueprint(run)):
        _print_json(_outputs(identity, run))


def _outputs(identity: CommandIdentity, run: Execution) -> Any:
    """Return the outputs of the blueprint; if it declares none, the output of its last step."""
    if run.outputs is not None:
        return run.outputs
    with tenant_scope(identity.tenant):
        return last_step(run).output


def _lines(
    identity: CommandIdentity, run: Execution, *, step: str, follow: bool
) -> Iterator[StepLog]:
    after, is_last = 0, not follow
    while True:
        with tenant_scope(identity.tenant):
            # Read before the lines, so that the last batch holds all lines that were written before the end.
            if follow:
                is_last = find_execution(run.public_id).state in TERMINAL_EXECUTION
            batch = list(found_logs(run, after=after, step=step)[:BATCH])
        yield from batch
        if batch:
            after = batch[-1].number
        elif is_last:
            return
        if follow and len(batch) < BATCH and not is_last:
            time.sleep(POLL_SECONDS)


def _blueprint(run: Execution) -> str:
    return str(run.blueprint_version.blueprint.name)


def _print_json(value: Any) -> None:
    click.echo(plain(json.dumps(value, indent=2, default=str, ensure_ascii=False)))
