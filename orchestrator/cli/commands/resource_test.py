"""`isolane resources test`: test a definition with a run.

Timing: request-time; the run happens in a worker's runtime and is polled.
Model: sync.
Guarantee: as the service's.
Failure: bubble, as one line; exit 1 for a definition that does not work or leaves something behind.
"""

import json
import time

import click

from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.selectors.executions import execution, last_step
from executions.selectors.resource_records import Balance, balance
from executions.services.resource_test import blueprint_of, check_resource
from executions.states import TERMINAL_EXECUTION, ExecutionState
from foundation.errors import Unavailable
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.identity import CommandIdentity, tenant_options
from orchestrator.cli.support.parsing import plain
from orchestrator.cli.support.platform import PlatformCommand
from tenants.roles import Permission
from tenants.scope import tenant_scope

POLL_SECONDS = 0.2
WAIT_SECONDS = 120


@click.command("test", cls=PlatformCommand)
@click.argument("name")
@tenant_options
def test(*, name: str, tenant: str, api_key: str | None) -> None:
    """Test the definition NAME: open it in a runtime, ask the remote server for a sign of life, and close it.

    Prints the answer of the server and the totals of the run's ledger. Exit 1 if the resource cannot be opened, does
    not answer or leaves something behind.
    """
    identity = CommandIdentity(tenant, api_key)
    identity.require(Permission.EXECUTION_RUN, blueprint_of(name))
    submitted = check_resource(identity.tenant, name, requested_by=identity.name)
    admit_and_send(bounded=True)
    click.echo(submitted.public_id)
    run = _wait_for_end(identity, submitted.public_id)
    with tenant_scope(identity.tenant):
        output = last_step(run).output or {}
        total = balance(run)
    if run.state == ExecutionState.SUCCEEDED:
        # Not data of a run: the platform asked, and the server describes its own connection.
        click.echo(f"{name} answers: {plain(json.dumps(output.get('said'), ensure_ascii=False))}")
    else:
        click.echo(f"{name} does not work: {run.state} {run.code}: {plain(run.message)}")
    click.echo(_ledger(total))
    if run.state != ExecutionState.SUCCEEDED or not total.is_clean:
        raise SystemExit(1)


def _wait_for_end(identity: CommandIdentity, public_id: str) -> Execution:
    deadline = time.monotonic() + WAIT_SECONDS
    with CONSOLE.status("queued") as line:
        while time.monotonic() < deadline:
            with tenant_scope(identity.tenant):
                run = execution(public_id)
            line.update(run.state)
            if run.state in TERMINAL_EXECUTION:
                return run
            time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"{public_id} is {run.state} after {WAIT_SECONDS} s; check that workers are running and have free slots"
        f" ('isolane executions show {public_id} --tenant {identity.tenant.schema}')."
    )


def _ledger(total: Balance) -> str:
    verdict = "clean" if total.is_clean else "not clean"
    return f"{verdict}: {total.allocated} allocated, {total.disposed} gone, {total.open} open"
