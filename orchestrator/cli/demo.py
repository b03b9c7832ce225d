"""`isolane demo`: everything once, from an empty machine to finished runs of two tenants."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
import psutil
from rich.live import Live
from rich.table import Column, Table

from orchestrator import env
from orchestrator.cli.django import CONSOLE
from orchestrator.cli.http import Client
from orchestrator.cli.stack import prepare_platform, say
from orchestrator.embedded.child import runs
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.stack import Stack, StackOptions, running_stack

TENANTS = ("acme", "globex")
APPROVES = "acme"  # what its runs ask; the other tenant rejects
ORDERS_PER_TENANT = 2
WORKERS = 2
RUN_SECONDS = 120
POLL_SECONDS = 0.25
ENDED = frozenset({"succeeded", "failed", "timed_out", "cancelled"})


@dataclass
class Followed:
    """A run and what is known of it."""

    tenant: str
    client: Client
    run: dict[str, Any]


@click.command()
def demo() -> None:
    """Start everything, run blueprints in two tenants at the same time, stop everything.

    One of them asks a person; the demo answers.

    Exit 1 if a run fails or a process is left behind.
    """
    kept = env.home(os.environ)
    EmbeddedPaths(kept).prepare_home()
    home = kept / "demo"
    options = StackOptions(home=home, kept_home=kept, durable=False, workers=WORKERS)
    CONSOLE.print("Starting the platform")
    with running_stack(options, say) as stack:
        prepare_platform(stack)
        stack.start_processes(WORKERS)
        followed = _submit(stack)
        _follow(stack, followed)
        _print_outputs(followed)
        started = _started()
        CONSOLE.print("Stopping the platform")
    states = [item.run["state"] for item in followed]
    if complaint := complain(states, left=sum(map(runs, started))):
        raise click.ClickException(complaint)
    CONSOLE.print(f"{len(followed)} runs succeeded, nothing is left running.", style="green")


def complain(states: Sequence[str], *, left: int) -> str:
    """What was not as it should be, from how the runs ended and how many processes outlived the stack."""
    failed = sum(state != "succeeded" for state in states)
    return f"{failed} runs did not succeed, {left} processes were left." if failed or left else ""


def _started() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _submit(stack: Stack) -> list[Followed]:
    """Make tenants, publish blueprints, and submit through the API as a customer's program would."""
    from executions.blueprint.reading import parse  # noqa: PLC0415 - needs the stack's settings
    from executions.services.blueprints import publish  # noqa: PLC0415 - likewise
    from tenants.scope import tenant_scope  # noqa: PLC0415 - likewise
    from tenants.selectors import tenant_by_schema  # noqa: PLC0415 - likewise
    from tenants.services.api_keys import create_api_key  # noqa: PLC0415 - likewise
    from tenants.services.tenants import TenantExists, create_tenant  # noqa: PLC0415 - likewise

    examples = env.PROJECT_ROOT / "examples"
    documents = [
        parse((examples / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("order", "approval")
    ]
    clients = []
    for schema in TENANTS:
        try:
            tenant = create_tenant(schema=schema, trusted=True, actor="demo")
        except TenantExists:  # on external servers, from an earlier demo
            tenant = tenant_by_schema(schema)
        with tenant_scope(tenant):
            for document in documents:
                publish(document)
        key = create_api_key(tenant=tenant, name="demo", actor="demo")
        clients.append((schema, Client(base_url=stack.web_url, api_key=key)))
        say(f"tenant {schema} with blueprints order and approval")
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("order", {"order_id": 100 + number}) for number in range(ORDERS_PER_TENANT)
    ]
    wanted.append(("approval", {"invoice_id": 7, "total": "30.00"}))
    return [
        Followed(schema, client, client.submit(blueprint, inputs))
        for blueprint, inputs in wanted
        for schema, client in clients
    ]


def _follow(stack: Stack, followed: list[Followed]) -> None:
    with Live(_table(followed), console=CONSOLE, refresh_per_second=8) as live:

        def ended() -> bool:
            for item in followed:
                if item.run["state"] not in ENDED:
                    _update(item)
                    _answer(item)
            live.update(_table(followed))
            return all(item.run["state"] in ENDED for item in followed)

        _wait(stack, ended, RUN_SECONDS, "the runs did not end")
    if not CONSOLE.is_terminal:
        CONSOLE.print()  # rich leaves the table's last line open in a log


def _print_outputs(followed: list[Followed]) -> None:
    for item in followed:
        outputs = json.dumps(item.run["outputs"], ensure_ascii=False)
        click.echo(f"  {item.tenant} {item.run['id']} {outputs}")


def _update(item: Followed) -> None:
    before, item.run = item.run, item.client.execution(item.run["id"])
    news = (item.run["state"], item.run["steps_done"])
    if not CONSOLE.is_terminal and news != (before["state"], before["steps_done"]):
        say(f"{item.tenant} {item.run['id']} {news[0]} {news[1]}/{item.run['steps_total']}")


def _answer(item: Followed) -> None:
    """Be the person whom a suspended run asks."""
    if item.run["state"] != "suspended":
        return
    for question in item.client.questions(item.run["id"]):
        answered = item.client.answer(question, approved=item.tenant == APPROVES)
        say(f"{item.tenant} asks {question['prompt']!r}: {answered['state']}")


def _wait(stack: Stack, condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        stack.supervisor.poll()
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"{otherwise} within {seconds:.0f} s; see .isolane/demo/logs"
            )
        time.sleep(POLL_SECONDS)


def _table(followed: list[Followed]) -> Table:
    table = Table(
        "tenant", Column("execution", overflow="fold"), "status", "steps", "duration", "worker"
    )
    for item in followed:
        run = item.run
        steps = f"{run['steps_done']}/{run['steps_total']}"
        table.add_row(item.tenant, run["id"], run["state"], steps, _duration(run), run["worker"])
    return table


def _duration(run: dict[str, Any]) -> str:
    from django.utils.dateparse import parse_datetime  # noqa: PLC0415 - needs the stack's settings

    started, finished = (parse_datetime(run[key] or "") for key in ("started_at", "finished_at"))
    return f"{(finished - started).total_seconds():.2f} s" if started and finished else ""
