"""`isolane up`, `status` and `down`: run the whole platform on this machine."""

import contextlib
import json
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

import click
import psutil
from rich.table import Table

from orchestrator import env
from orchestrator.cli.support.django import CONSOLE, setup_django
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.state import StackState, read_running
from orchestrator.embedded.supervisor import StopRequested
from orchestrator.stack import Stack, StackOptions, running_stack

STOP_SECONDS = 60


def print_progress(line: str) -> None:
    """Print one line of progress."""
    CONSOLE.print(f"  {line}", style="dim")


@click.command()
@click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1, 64), help="Number of workers."
)
@click.option(
    "--port", default=8000, show_default=True, help="Port of web; a free one if it is in use."
)
@click.option(
    "--flower-port",
    default=5555,
    show_default=True,
    help="Port of Flower; a free one if it is in use.",
)
def up(workers: int, port: int, flower_port: int) -> None:
    """Run servers, web, workers, a provisioner and Flower until Ctrl-C; data is kept between starts.

    PostgreSQL, Valkey and the run cache are embedded, unless DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL name other
    servers; with those, ISOLANE_CACHE_URL names a run cache.
    """
    home = env.home(os.environ)
    options = StackOptions(
        home=home, kept_home=home, workers=workers, web_port=port, flower_port=flower_port
    )
    # A signal is the normal end, also during the start.
    with contextlib.suppress(StopRequested), running_stack(options, print_progress) as stack:
        password = prepare_platform(stack)
        stack.start_processes(workers)
        stack.publish_state()
        _report_process_level(stack)
        _print_urls(stack, password, home)
        stack.supervisor.run()
    CONSOLE.print("Stopped.")


def prepare_platform(stack: Stack) -> str | None:
    """Migrate and create the first administrator; return the password if it was created now."""
    os.environ.update(stack.environment)
    setup_django()
    from tenants.provisioning import migrate  # noqa: PLC0415 - needs the stack's settings
    from tenants.services.users import ensure_admin  # noqa: PLC0415 - likewise

    print_progress("migrating")
    for failed in migrate():
        print_progress(f"tenant {failed.schema} could not be migrated: {failed.error}")
    password = stack.secrets.admin_password
    return password if ensure_admin(username="admin", password=password) else None


def _report_process_level(stack: Stack) -> None:
    from orchestrator.cli.support.process_level import (  # noqa: PLC0415 - needs the stack's settings
        report_process_level,
    )

    report_process_level(
        stack.node_names().values(), "Runs of tenants that are not trusted are refused."
    )


def _print_urls(stack: Stack, password: str | None, home: Path) -> None:
    state = stack.describe()
    table = Table(show_header=False, box=None, padding=(0, 2))
    kept = f"password in {home / 'secrets.json'} (admin_password), unless you have changed it"
    table.add_row(
        "Admin", state.admin_url, "user admin, " + (f"password {password}" if password else kept)
    )
    table.add_row("API docs", state.docs_url, "")
    table.add_row(
        "Flower",
        state.flower_url,
        f"user admin, password in {home / 'secrets.json'} (flower_password)",
    )
    CONSOLE.print(table)
    CONSOLE.print("Running; Ctrl-C stops it.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def status(*, as_json: bool) -> None:
    """Show the platform started by 'isolane up'; exit 3 if it is not running."""
    state = _state()
    if state is None:
        click.echo('{"running": false}' if as_json else "Not running. Start it with 'make up'.")
        raise SystemExit(3)
    if as_json:
        shown = {key: value for key, value in asdict(state).items() if key != "environment"}
        click.echo(json.dumps({"running": True, **shown}))
        return
    table = Table("process", "pid", "state", "worker")
    for name, pid in {"supervisor": state.pid, **state.children}.items():
        running = "running" if psutil.pid_exists(pid) else "ended"
        table.add_row(name, str(pid), running, state.nodes.get(name, ""))
    CONSOLE.print(table)
    CONSOLE.print(f"Admin {state.admin_url}  API docs {state.docs_url}  Flower {state.flower_url}")
    CONSOLE.print(f"Run cache {state.cache_address or 'none: set ISOLANE_CACHE_URL'}")


@click.command()
def down() -> None:
    """Stop the platform started by 'isolane up' in any terminal of this machine."""
    state = _state()
    if state is None:
        click.echo("Not running.")
        return
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    with CONSOLE.status("Stopping"):
        while state.is_alive and time.monotonic() < deadline:
            time.sleep(0.1)
    if state.is_alive:
        raise click.ClickException(f"It still runs after {STOP_SECONDS} s (pid {state.pid}).")
    click.echo("Stopped.")


def _state() -> StackState | None:
    return read_running(EmbeddedPaths(env.home(os.environ)).state_file)
