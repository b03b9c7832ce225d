"""`isolane approvals`.

Questions are data of the tenant: reading and answering them needs an API key, as over HTTP.

Timing: request-time.
Model: sync.
Guarantee: as the service's.
Failure: bubble, as one line.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.markup import escape
from rich.table import Table

from executions.api.serializers.approvals import ApprovalSerializer
from executions.models import ApprovalState
from executions.placement.dispatch import admit_and_send
from executions.selectors.approvals import approvals as found
from executions.selectors.executions import find_execution
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import answer, refuse_other_tenants
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import HINT, CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import PlatformGroup
from tenants.roles import Permission
from tenants.scope import tenant_scope

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=PlatformGroup)
def approvals() -> None:
    """List, approve and reject questions of a tenant's runs to people."""


@approvals.command("list")
@tenant_options
@click.option(
    "--state",
    type=click.Choice([*ApprovalState.values, "all"]),
    default=ApprovalState.OPEN.value,
    show_default=True,
    help="Only questions in this state.",
)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Most rows."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for programs."
)
def list_(*, tenant: str, api_key: str | None, state: str, limit: int, as_json: bool) -> None:
    """List questions, the newest first."""
    identity = CommandIdentity(tenant, api_key)
    wanted = found(identity.reach)
    if state != "all":
        wanted = wanted.filter(state=state)
    with tenant_scope(identity.tenant):
        rows = [
            row if identity.sees_data(row["blueprint"]) else {**row, "prompt": "", "comment": ""}
            for row in ApprovalSerializer(wanted[:limit], many=True).data
        ]
    if any(not identity.sees_data(row["blueprint"]) for row in rows):
        click.echo(HINT, err=True)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    table = Table("execution", "number", "blueprint", "step", "prompt", "state", "by", "expires")
    for row in rows:
        table.add_row(
            row["execution"], str(row["number"]), row["blueprint"], row["step"], escape(plain(row["prompt"])),
            row["state"], row["answered_by"], row["expires_at"][:19],
        )  # fmt: skip
    CONSOLE.print(table)


def _answer_arguments(command: Command) -> Command:
    command = click.option("--comment", default="", help="A comment, stored with the answer.")(
        command
    )
    command = tenant_options(command)
    command = click.argument("number", type=click.IntRange(min=1))(command)
    return click.argument("execution_id")(command)


@approvals.command()
@_answer_arguments
def approve(**given: Any) -> None:
    """Approve question NUMBER of the run EXECUTION_ID; the run continues."""
    _answer(approved=True, **given)


@approvals.command()
@_answer_arguments
def reject(**given: Any) -> None:
    """Reject question NUMBER of the run EXECUTION_ID; the run continues and sees the rejection."""
    _answer(approved=False, **given)


def _answer(
    *,
    approved: bool,
    execution_id: str,
    number: int,
    tenant: str,
    api_key: str | None,
    comment: str,
) -> None:
    identity = CommandIdentity(tenant, api_key)
    refuse_other_tenants(identity.tenant, execution_id, by=identity.name, reach=identity.reach)
    with tenant_scope(identity.tenant):
        run = find_execution(execution_id, identity.reach)
    blueprint = run.blueprint_version.blueprint.name
    identity.require_data(blueprint)
    identity.require(Permission.EXECUTION_ANSWER, blueprint)
    reply = ApprovalReply(approved=approved, by=identity.name, comment=comment)
    answered = answer(identity.tenant, execution_id, number, reply, reach=identity.reach)
    admit_and_send(bounded=True)
    click.echo(f"{answered.state.capitalize()}.")
