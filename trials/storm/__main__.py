"""`python -m trials.storm`: run steps that misbehave, then list what they left behind.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: best-effort; unless it is killed, it stops all it started and removes its directory.
Failure: exit code 1 with a list of what is left, or a traceback.
"""

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import redis

from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import StopRequested
from tests.customer import Customer, running_customer
from tests.recorder import Recorder
from trials.output import print_counts, progress
from trials.stage import configure, create_tenants, log_folder, prepared_servers
from trials.storm import plan

NODES = "tests.acceptance.storm_nodes"
LOOPBACK = "127.0.0.0/8"
SHOWN = 50  # lines of what is left
SHOWN_LATE = 10


@click.command()
@click.option("--runs", type=click.IntRange(1, 100_000), default=1000, show_default=True)
@click.option("--seed", type=int, help="Repeat an earlier trial. Default: a new seed, shown.")
@click.option("--workers", type=click.IntRange(2, 8), default=3, show_default=True)
@click.option("--freeze/--no-freeze", default=True, help="Stop a worker for longer than its lease.")
@click.option(
    "--untrusted/--no-untrusted",
    default=True,
    help="Let half of the runs be those of untrusted tenants, at level process.",
)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that keeps the workers' logs; without it they are removed.",
)
def main(
    *, runs: int, seed: int | None, workers: int, freeze: bool, untrusted: bool, logs: Path | None
) -> None:
    """Run steps of tenants that misbehave in every way; exit code 1 if anything is left behind."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    progress(f"seed {seed}, {runs} runs, {workers} workers")
    try:
        with _stage(logs) as (servers, customer, folder):
            size = {"runs": runs, "seed": seed, "workers": workers, "freeze": freeze}
            left = _run(servers, customer, folder, plan.UNTRUSTED if untrusted else (), size)
    except StopRequested:
        progress("stopped")
        raise SystemExit(130) from None
    for line in left[:SHOWN]:
        click.echo(f"LEFT: {line}")
    click.echo(f"{len(left)} things are left" if left else "nothing is left")
    sys.exit(1 if left else 0)


@contextmanager
def _stage(logs: Path | None) -> Iterator[tuple[EmbeddedServers, Customer, Path]]:
    with ExitStack() as stack:
        servers, supervisor, folder = stack.enter_context(prepared_servers("storm"))
        for server in servers.children():
            supervisor.start(server)
        servers.bootstrap()
        customer = stack.enter_context(running_customer(servers.paths))
        configure(
            servers,
            nodes=NODES,
            ISOLANE_CACHE_URL=servers.cache_url,
            ISOLANE_RESOURCE_NETWORKS=LOOPBACK,
        )
        yield servers, customer, log_folder(logs, folder / "workers")


def _run(
    servers: EmbeddedServers,
    customer: Customer,
    folder: Path,
    untrusted: Sequence[str],
    size: dict[str, Any],
) -> list[str]:
    from trials.storm.orphans import Remotes  # noqa: PLC0415 - models need Django set up
    from trials.storm.scenario import Size, run_storm  # noqa: PLC0415

    tenants = create_tenants(plan.TENANTS, untrusted, actor="storm")
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder().serving())
        cache = stack.enter_context(redis.Redis.from_url(servers.cache_url, decode_responses=True))
        remotes = Remotes(customer=customer, recorder=recorder, cache=cache)
        began = time.monotonic()
        result = run_storm(*tenants, remotes, folder, Size(**size), progress=progress)
    print_counts("steps", result.behaviours)
    print_counts("runs", result.runs)
    print_counts("levels", result.levels)
    print_counts("records", result.records)
    click.echo(f"most things at the remotes at once: {result.remote_state.most}")
    _print_late(result.remote_state.longest)
    progress(
        f"{time.monotonic() - began:.0f} s, settled {result.settled_s:.1f} s after the last run"
    )
    return result.left


def _print_late(longest: Mapping[UUID, tuple[float, str]]) -> None:
    """Print what outlived its run; this is not a failure, since the sweeper needs some time after a kill."""
    click.echo(f"runs of which a remote still had something after their end: {len(longest)}")
    for seconds, line in sorted(longest.values(), reverse=True)[:SHOWN_LATE]:
        click.echo(f"  {seconds:6.1f} s {line}")


if __name__ == "__main__":
    main()
