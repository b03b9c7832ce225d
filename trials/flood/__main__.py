"""`python -m trials.flood`: run very many sandboxes, then list what they left on the machine.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: best-effort; unless it is killed, it stops all it started and removes its directory.
Failure: exit code 1 with a list of broken promises, or a traceback.
"""

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from orchestrator.embedded.supervisor import StopRequested
from orchestrator.env import PROJECT_ROOT
from trials.flood import plan
from trials.output import print_counts, progress
from trials.stage import configure, create_tenants, log_folder, prepared_servers

NODES = "tests.acceptance.flood_nodes"
SHOWN = 50  # lines of what is wrong
_THREADS_BESIDE = 2  # of a worker, beside those of its runs


@click.command()
@click.option("--runs", type=click.IntRange(1, 100_000), default=2000, show_default=True)
@click.option("--at-once", type=click.IntRange(2, 64), default=16, show_default=True)
@click.option("--workers", type=click.IntRange(2, 8), default=2, show_default=True)
@click.option("--kill/--no-kill", default=True, help="Kill a worker in the middle.")
@click.option("--seed", type=int, help="Repeat an earlier trial. Default: a new seed, shown.")
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that keeps the workers' logs; without it they are removed.",
)
def main(
    *, runs: int, at_once: int, workers: int, kill: bool, seed: int | None, logs: Path | None
) -> None:
    """Run sandboxes of two tenants; exit code 1 if a run ends otherwise than promised or anything is left."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    progress(f"seed {seed}, {runs} runs, {at_once} at a time, {workers} workers")
    try:
        with _stage(logs, capacity=-(-at_once // workers)) as folder:
            wrong = _run(folder, runs=runs, seed=seed, workers=workers, at_once=at_once, kill=kill)
    except StopRequested:
        progress("stopped")
        raise SystemExit(130) from None
    for line in wrong[:SHOWN]:
        click.echo(line)
    if os.geteuid() != 0:
        click.echo("namespaces were not searched for: only root may inspect workers and guards")
    click.echo(f"{len(wrong)} promises are broken" if wrong else "nothing is left")
    sys.exit(1 if wrong else 0)


@contextmanager
def _stage(logs: Path | None, *, capacity: int) -> Iterator[Path]:
    with prepared_servers("flood") as (servers, supervisor, folder):
        for server in servers.children():
            supervisor.start(server)
        servers.bootstrap()
        workers = log_folder(logs, folder / "workers")
        configure(
            servers,
            nodes=NODES,
            ISOLANE_WORKER_CAPACITY=str(capacity),
            ISOLANE_WORKER_CONCURRENCY=str(capacity + _THREADS_BESIDE),
        )
        yield workers


def _run(folder: Path, **size: Any) -> list[str]:
    from trials.flood.scenario import FloodSize, run_flood  # noqa: PLC0415 - models need Django set up

    _, tenants = create_tenants((), plan.TENANTS, actor="flood")
    # The folder among the paths tells the processes of this trial from others.
    os.environ["ISOLANE_NODE_PATHS"] = f"{PROJECT_ROOT}:{folder}"
    result = run_flood(tenants, folder, FloodSize(**size), progress=progress)
    print_counts("runs", result.ends)
    click.echo(f"sandboxes seen: {result.sandboxes}, at most {result.most} at once")
    click.echo(f"median of a run: {result.cpu_ms:.1f} ms CPU, {result.ram_mb:.1f} MB")
    click.echo(f"{size['runs'] / result.seconds:.1f} runs/s")
    progress(f"{result.seconds:.0f} s, settled {result.settled_s:.1f} s after the last run")
    return [*result.broken, *(f"LEFT: {line}" for line in result.left)]


if __name__ == "__main__":
    main()
