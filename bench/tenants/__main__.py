"""`python -m bench.tenants`: measure runs of few and of many tenants."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import click
from rich.console import Console

from bench import environment, machine
from bench.stage import STATISTICS, platform_environ, running_servers
from bench.tenants.figures import CONNECTIONS, TenantsFigure, table
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.env import PROJECT_ROOT

TENANTS = (2, 40, 300, 1000)
LEAST_RUNS = 400
WARMING = 3  # runs of each tenant before the measurement
PROGRAM = "bench.tenants.measured"
# Each tenant's statements count by themselves; those that do not fit would not count.
ALL_STATEMENTS = {**STATISTICS, "pg_stat_statements.max": "100000"}
OUT = Console(highlight=False, width=140)


@click.command()
@click.option(
    "--tenants",
    multiple=True,
    type=click.IntRange(1, 10_000),
    help="Number of tenants; may be repeated. Default: 2, 40, 300 and 1000.",
)
@click.option(
    "--connections",
    multiple=True,
    type=click.Choice(list(CONNECTIONS)),
    help="; ".join(f"{name}: {text}" for name, text in CONNECTIONS.items()) + ". Default: both.",
)
@click.option(
    "--runs", type=click.IntRange(1), help="Measured runs. Default: 400, or one of each tenant."
)
def main(*, tenants: Sequence[int], connections: Sequence[str], runs: int | None) -> None:
    """Measure planning, time and the backends' RAM of runs, tenants in turn, on embedded servers."""
    load = machine.load()
    figures = []
    with running_servers(ALL_STATEMENTS) as (servers, _):
        for number in sorted(tenants or TENANTS):
            for name in connections or CONNECTIONS:
                figures.append(_measure(servers, number, name, runs or max(LEAST_RUNS, number)))
                OUT.print(f"  {figures[-1]}", style="dim")
    OUT.print(table(figures))
    OUT.print(f"load before {load}")


def _measure(servers: EmbeddedServers, tenants: int, connections: str, runs: int) -> TenantsFigure:
    warming = max(LEAST_RUNS, WARMING * tenants)
    given = [str(tenants), connections, str(runs), str(warming)]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", PROGRAM, *given],
        input=servers.superuser_url + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=PROJECT_ROOT,
        env={**environment.clean(os.environ), **platform_environ(servers)},
    )
    return TenantsFigure(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
