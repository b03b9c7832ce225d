"""`isolane executions`.

An operator's terminal shows states, codes and times. What steps were given, gave back and said belongs to the tenant:
it is shown to a caller with the right to view it, known by an API key, as over HTTP.

Timing: request-time; following a run polls it. Model: sync. Guarantee: as the service's. Failure: bubble, as one line.
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
from orchestrator.cli.support.parsing import input_pair, plain, typed_inputs
from orchestrator.cli.support.platform import PlatformGroup
from tenants.roles import Permission
from tenants.scope import tenant_scope

POLL_SECONDS = 0.3
ANSWER = "isolane approvals list --tenant"
BATCH = 500  # lines or events that are read at once


idempotency_key_option = click.option(
    "--idempotency-key",
    default="",
    metavar="KEY",
    help="The same key with the same request gives the run that it made before.",
)


@click.group(cls=PlatformGroup)
def executions() -> None:
    """Runs of a tenant: submit, replay, follow, show and cancel them."""


executions.add_command(resources)
executions.add_command(list_unclean)


# --- doing
@executions.command()
@click.argument("blueprint")
@tenant_options
@click.option(
    "--input",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Repeatable; VALUE is JSON or text.",
)
@click.option("--version", type=click.IntRange(min=1), help="The newest if not said.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the run's random numbers.")
@idempotency_key_option
@click.option(
    "--wait/--no-wait",
    default=False,
    help="Follow the run until it ends and print what it gives back; exit 1 if it fails.",
)
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
    with typed_inputs():
        submitted = submit_run(identity.tenant, request)
    _started(identity, submitted, wait=wait)


@executions.command()
@click.argument("execution_id")
@tenant_options
@idempotency_key_option
@click.option("--wait/--no-wait", default=False, help="As of submit.")
def replay(
    *, execution_id: str, tenant: str, api_key: str | None, idempotency_key: str, wait: bool
) -> None:
    """Run a run's version again with its seed and inputs, and print the new id.

    Steps that are declared deterministic must come to the same again.
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
    """Ask a run to stop."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        identity.require(Permission.EXECUTION_CANCEL, _blueprint(run))
        state = request_cancel(run.pk, actor=identity.name)
    click.echo("Cancelled." if state == "cancelled" else "Asked to stop; it ends within seconds.")


# --- looking
@executions.command("list")
@tenant_options
@click.option("--state", type=click.Choice(ExecutionState.values), help="Only these.")
@click.option("--blueprint", help="Only runs of this one.")
@click.option(
    "--label", "labels", multiple=True, metavar="KEY:VALUE", help="Repeatable; only what has all."
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
def list_(
    *,
    tenant: str,
    api_key: str | None,
    state: str | None,
    blueprint: str | None,
    labels: tuple[str, ...],
    limit: int,
) -> None:
    """List a tenant's runs, newest first."""
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
@click.option("--after", default=0, type=click.IntRange(min=0), help="Begin behind this number.")
def events(execution_id: str, tenant: str, api_key: str | None, after: int) -> None:
    """Print what happened in a run, one JSON object a line."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        sees_data = identity.sees_data(_blueprint(run))
        while batch := list(found_events(run, after=after)[:BATCH]):
            for event in EventSerializer(batch, many=True).data:
                # ASCII, so that nothing in it can steer the terminal.
                shown = event if sees_data else event_without_data(event)
                click.echo(json.dumps(shown, default=str))
            after = batch[-1].sequence
    if not sees_data:
        click.echo(HINT, err=True)


@executions.command()
@click.argument("execution_id")
@tenant_options
@click.option("--step", default="", help="Only what this step says.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def logs(
    *,
    execution_id: str,
    tenant: str,
    api_key: str | None,
    step: str,
    follow: bool,
    as_json: bool,
) -> None:
    """Print what a run's steps say; what is sensitive is masked."""
    identity = CommandIdentity(tenant, api_key)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
        identity.require_data(_blueprint(run))
    for line in _lines(identity, run, step=step, follow=follow):
        if as_json:
            said = LogSerializer(line, context={"tenant_id": identity.tenant.schema}).data
            click.echo(json.dumps(said, default=str))
            continue
        where = f"{line.step}#{line.attempt}"
        click.echo(f"{line.at:%H:%M:%S} {where} {line.level} {plain(line.message)}")


@executions.command()
@click.argument("execution_id")
@tenant_options
@click.option("--json", "as_json", is_flag=True, help="For programs, one JSON object a line.")
def costs(*, execution_id: str, tenant: str, api_key: str | None, as_json: bool) -> None:
    """Print what each attempt of a run's steps cost, and all of them together."""
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
        click.echo("The key was used before; this is the run that it made.", err=True)
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
        _print_json(_given_back(identity, run))


def _given_back(identity: CommandIdentity, run: Execution) -> Any:
    """The blueprint's outputs, or, where it declares none, what its last step came to."""
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
            # Asked before the lines: what was said before the end is then among them.
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
