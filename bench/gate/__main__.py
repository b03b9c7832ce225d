"""`python -m bench.gate`: measure connections through the gate beside direct ones."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from bench import environment, machine
from bench.stage import platform_environ
from orchestrator.cli.support.django import setup_django
from orchestrator.embedded.customer import CustomerPostgres
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor
from orchestrator.env import PROJECT_ROOT

OUT = Console(highlight=False, width=140)
ERR = Console(highlight=False, stderr=True, width=140)
PROGRAM, NODES = "bench.gate.remote", "bench.gate.nodes"
SIZE = 4  # runtimes of a level
ALIVE_SECONDS = 3600.0


@click.command()
@click.option("--rounds", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option(
    "--mb", type=click.IntRange(16), default=100, show_default=True, help="Of a transfer."
)
@click.option("--quick", is_flag=True, help="Only show that it works; the figures mean nothing.")
def main(*, rounds: int, mb: int, quick: bool) -> None:
    """Measure throughput, latency and the price of a route, on this machine, over loopback."""
    rounds, times, runs = (1, 20, 3) if quick else (rounds, 1000, 30)
    load = machine.load()
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        paths = EmbeddedPaths(Path(home) / "home")
        paths.prepare()
        _configure(paths)
        try:
            _measure(paths, rounds, mb, times, runs)
        finally:
            paths.remove()
    OUT.print(f"load before {load}, after {machine.load()}")


def _configure(paths: EmbeddedPaths) -> None:
    """Make this process one that may reach loopback; the servers of the platform are never started."""
    servers = EmbeddedServers(paths, durable=False)
    clean = environment.clean(os.environ)
    os.environ.clear()
    os.environ.update(clean, **platform_environ(servers), ISOLANE_RESOURCE_NETWORKS="127.0.0.0/8")
    setup_django()


def _measure(paths: EmbeddedPaths, rounds: int, mb: int, times: int, runs: int) -> None:
    from bench.gate import figures, measure  # noqa: PLC0415 - they need the settings first
    from bench.gate.setting import setting_of  # noqa: PLC0415

    customer = CustomerPostgres(paths)
    customer.prepare()
    with Supervisor(paths.logs) as supervisor, _remote() as (pid, port):
        supervisor.start(customer.child())
        customer.bootstrap()
        with setting_of(customer, pid, port, nodes=NODES, size=SIZE, alive=ALIVE_SECONDS) as found:
            transfers: list[figures.Transfer] = []
            costs: list[figures.RouteCost] = []
            for number in range(rounds):
                began = time.monotonic()
                transfers += measure.transfers(found, number, mb)
                costs += measure.route_costs(found, number, runs)
                ERR.print(f"  round {number + 1}: {time.monotonic() - began:.1f} s", style="dim")
            OUT.print(figures.transfer_table(transfers))
            late = measure.results(found, times // 20)
            OUT.print(figures.times_table([*measure.latencies(found, times), late]))
            OUT.print(figures.route_table(costs))


@contextmanager
def _remote() -> Iterator[tuple[int, int]]:
    """Start the remote server; yield its process id and port."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", PROGRAM],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None  # noqa: S101 - a pipe
        assert server.stdout is not None  # noqa: S101 - likewise
        yield server.pid, int(server.stdout.readline())
        server.stdin.close()


if __name__ == "__main__":
    main()
