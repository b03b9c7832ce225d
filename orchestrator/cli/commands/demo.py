"""`isolane demo`: run the whole platform once, with runs of three tenants."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import psutil
from django.conf import settings
from rich.live import Live
from rich.table import Column, Table

from orchestrator import env
from orchestrator.cli.commands.stack import prepare_platform, print_progress
from orchestrator.cli.support.api_client import ApiClient
from orchestrator.cli.support.demo_resources import (
    ACTOR,
    NETWORKS,
    RemoteServers,
    balance_line,
    define,
    ledger_table,
    start_customer,
    without_cache,
)
from orchestrator.cli.support.django import CONSOLE
from orchestrator.cli.support.parsing import event_line, plain
from orchestrator.embedded.child import runs
from orchestrator.embedded.customer import CustomerPostgres
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.stack import Stack, StackOptions, running_stack

if TYPE_CHECKING:
    from tenants.scope import TenantRef

APPROVES = "acme"  # the others reject
ORDERS_PER_TENANT = 2
APPROVAL = "approval"
BILLING = "billing"
UNPAID_INVOICE = 2
WORKERS = 2
RUN_SECONDS = 120
_OWN_NODES = ("ISOLANE_NODE_PACKAGES", "ISOLANE_NODE_PATHS", "ISOLANE_TASK_PACKAGES")
POLL_SECONDS = 0.25
ENDED = frozenset({"succeeded", "failed", "timed_out", "cancelled"})


@dataclass
class FollowedRun:
    """A run, and its latest state."""

    tenant: str
    client: ApiClient
    run: dict[str, Any]


@click.command()
def demo() -> None:
    """Start the platform, run blueprints of three tenants at the same time, and stop the platform.

    One blueprint asks a person: the demo answers, and explains that run. One uses resources: a PostgreSQL that stands
    for the customer's, the run cache and a model. The demo shows its ledger, and what the servers still have of it.
    Runs have the level process. Where this machine cannot give it, a line says so, and they have shared.

    Exit 1 if a run fails, or if a process or something of a resource is left behind.
    """
    # Its blueprints need its own packages, whatever the operator has.
    for name in _OWN_NODES:
        os.environ.pop(name, None)
    kept = env.home(os.environ)
    EmbeddedPaths(kept).prepare_home()
    home = kept / "demo"
    options = StackOptions(
        home=home, kept_home=kept, durable=False, workers=WORKERS, resource_networks=NETWORKS
    )
    CONSOLE.print("Starting the platform")
    with running_stack(options, print_progress) as stack:
        prepare_platform(stack)
        customer = start_customer(stack)
        stack.start_processes(WORKERS)
        followed = _submit(stack, customer)
        _follow(stack, followed)
        _print_outputs(followed)
        _explain(followed)
        _show_connections(followed)
        unclean = _show_resources(followed, customer)
        started = _started()
        CONSOLE.print("Stopping the platform")
    states = [item.run["state"] for item in followed]
    if complaint := complain(states, left=sum(map(runs, started)), unclean=unclean):
        raise click.ClickException(complaint)
    CONSOLE.print(f"{len(followed)} runs succeeded, nothing is left running.", style="green")


def complain(states: Sequence[str], *, left: int, unclean: int) -> str:
    """Return a sentence about failed runs and leftovers; empty if there are none."""
    failed = sum(state != "succeeded" for state in states)
    if not (failed or left or unclean):
        return ""
    return (
        f"{failed} runs did not succeed, {left} processes were left, {unclean} runs have left something of"
        " their resources."
    )


def _started() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _submit(stack: Stack, customer: CustomerPostgres | None) -> list[FollowedRun]:
    """Create tenants, definitions and blueprints, and submit through the API as a customer's program would."""
    from orchestrator.cli.support.demo_tenants import (  # noqa: PLC0415 - needs the stack's settings
        prepare_tenants,
    )
    from tenants.services.api_keys import create_api_key  # noqa: PLC0415 - likewise

    wanted: list[tuple[str, dict[str, Any]]] = [
        ("order", {"order_id": 100 + number}) for number in range(ORDERS_PER_TENANT)
    ]
    wanted.append((APPROVAL, {"invoice_id": 7, "total": "30.00"}))
    if customer:
        wanted.append((BILLING, {"invoice_id": UNPAID_INVOICE}))
    else:
        print_progress("billing is left out: its PostgreSQL needs pip install 'isolane[embedded]'")
    if customer and not settings.CACHE_URL:
        print_progress(
            "billing runs without its cache steps: there is no run cache (ISOLANE_CACHE_URL)"
        )
    names = list(dict.fromkeys(name for name, _ in wanted))
    clients = []
    for tenant in prepare_tenants(stack.node_names().values()):
        _furnish(tenant, names, customer)
        key = create_api_key(tenant=tenant, name="demo", actor=ACTOR)
        clients.append((tenant.schema, ApiClient(base_url=stack.web_url, api_key=key)))
    return [
        FollowedRun(schema, client, client.submit(blueprint, inputs))
        for blueprint, inputs in wanted
        for schema, client in clients
    ]


def _furnish(
    tenant: "TenantRef", blueprints: Sequence[str], customer: CustomerPostgres | None
) -> None:
    """Give a tenant definitions and blueprints."""
    from executions.services.publishing import publish  # noqa: PLC0415 - needs the stack's settings
    from tenants.scope import tenant_scope  # noqa: PLC0415 - likewise

    defined = define(tenant, customer, cache=bool(settings.CACHE_URL)) if customer else []
    with tenant_scope(tenant):
        for name in blueprints:
            publish(_document(name))
    resources = f", resources {', '.join(defined)}" if defined else ""
    print_progress(f"tenant {tenant.schema} with blueprints {', '.join(blueprints)}{resources}")


def _document(name: str) -> dict[str, Any]:
    from executions.blueprints.reading import parse  # noqa: PLC0415 - needs the stack's settings

    file = env.PROJECT_ROOT / "examples" / f"{name}.yaml"
    document = parse(file.read_text(encoding="utf-8"))
    return without_cache(document) if name == BILLING and not settings.CACHE_URL else document


def _follow(stack: Stack, followed: list[FollowedRun]) -> None:
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


def _print_outputs(followed: list[FollowedRun]) -> None:
    for item in followed:
        run = item.run
        found = json.dumps(run["outputs"], ensure_ascii=False)
        if run["state"] != "succeeded":
            found = plain(f"{run['code']}: {run['message']}")
        click.echo(f"  {item.tenant} {run['id']} {found}")


def _explain(followed: list[FollowedRun]) -> None:
    """Explain the run that has asked a person, as `isolane explain` does."""
    item = next(item for item in followed if item.run["blueprint"] == APPROVAL)
    explanation = item.client.explanation(item.run["id"])
    click.echo(f"  What happened in {item.tenant} {item.run['id']} (isolane explain):")
    for event in explanation["results"]:
        click.echo(f"    {event_line(datetime.fromisoformat(event['at']), event['text'])}")
    click.echo(f"    {plain(explanation['now'])}")


def _show_connections(followed: list[FollowedRun]) -> None:
    """Print what a run with resources has reached through its gate; at `shared` it has none."""
    item = next((item for item in followed if item.run["blueprint"] == BILLING), None)
    if item is None:
        return
    run = item.run["id"]
    events = item.client.explanation(run)["results"]
    if found := [event for event in events if event["kind"].startswith("connection.")]:
        way = "through the worker, which logged in (no password inside)"
        click.echo(f"  {item.tenant} {run} reached, {way}:")
    for event in found:
        click.echo(f"    {event_line(datetime.fromisoformat(event['at']), event['text'])}")


def _show_resources(followed: list[FollowedRun], customer: CustomerPostgres | None) -> int:
    """Print the ledger of one run and the leftovers of all that use resources; return how many have left some."""
    if customer is None:
        return 0
    servers = RemoteServers(customer, settings.CACHE_URL)
    billing = [item for item in followed if item.run["blueprint"] == BILLING]
    unclean = 0
    for item in billing:
        run = item.run["id"]
        ledger, left = item.client.resources(run), servers.left(run)
        if item is billing[0]:
            CONSOLE.print(ledger_table(ledger))
        click.echo(f"  {item.tenant} {run} {balance_line(ledger)}")
        seen = f"{servers.connections(run)} connection(s) of it in the log of the customer's PostgreSQL"
        counts = ", ".join(f"{number} {what}" for what, number in left.items())
        click.echo(f"    {seen}; left: {counts}")
        unclean += not ledger["balance"]["clean"] or any(left.values())
    return unclean


def _update(item: FollowedRun) -> None:
    before, item.run = item.run, item.client.execution(item.run["id"])
    progress = (item.run["state"], item.run["steps_done"])
    if not CONSOLE.is_terminal and progress != (before["state"], before["steps_done"]):
        print_progress(
            f"{item.tenant} {item.run['id']} {progress[0]} {progress[1]}/{item.run['steps_total']}"
        )


def _answer(item: FollowedRun) -> None:
    """Answer the open questions of a suspended run."""
    if item.run["state"] != "suspended":
        return
    for question in item.client.questions(item.run["id"]):
        answered = item.client.answer(question, approved=item.tenant == APPROVES)
        print_progress(f"{item.tenant} asks {question['prompt']!r}: {answered['state']}")


def _wait(stack: Stack, condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        stack.supervisor.poll()
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"{otherwise} within {seconds:.0f} s; see .isolane/demo/logs"
            )
        time.sleep(POLL_SECONDS)


def _table(followed: list[FollowedRun]) -> Table:
    table = Table(
        "tenant",
        Column("execution", overflow="fold"),
        "level",
        "status",
        "steps",
        "duration",
        "worker",
    )
    for item in followed:
        run = item.run
        steps = f"{run['steps_done']}/{run['steps_total']}"
        level, took = run["isolation"], _duration(run)
        table.add_row(item.tenant, run["id"], level, run["state"], steps, took, run["worker"])
    return table


def _duration(run: dict[str, Any]) -> str:
    from django.utils.dateparse import parse_datetime  # noqa: PLC0415 - needs the stack's settings

    started, finished = (parse_datetime(run[key] or "") for key in ("started_at", "finished_at"))
    return f"{(finished - started).total_seconds():.2f} s" if started and finished else ""
