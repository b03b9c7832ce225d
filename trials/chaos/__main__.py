"""`python -m trials.chaos`: inject faults into a platform at work, then check every run against its guarantees.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: best-effort; unless it is killed, it stops all it started and removes its directory.
Failure: exit code 1 with a list of findings, or a traceback.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.embedded.supervisor import StopRequested
from tests.customer import Customer, running_customer
from trials.chaos import plan
from trials.chaos.findings import FindingKind
from trials.chaos.servers import Servers
from trials.output import print_counts, progress
from trials.stage import configure, create_tenants, log_folder, prepared_servers

if TYPE_CHECKING:
    from trials.chaos.scenario import ChaosResult, Size

NODES = "tests.acceptance.chaos_nodes"
LOOPBACK = "127.0.0.0/8"
SHOWN = 50  # findings
COUNTED = (FindingKind.LOST, FindingKind.AGAIN, FindingKind.SLOT, FindingKind.PROCESS)


@click.command()
@click.option("--seconds", type=click.FloatRange(10, 86_400), default=60, show_default=True)
@click.option("--seed", type=int, help="Repeat an earlier trial. Default: a new seed, shown.")
@click.option("--runs-at-once", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--workers", type=click.IntRange(2, 8), default=3, show_default=True)
@click.option(
    "--untrusted/--no-untrusted",
    default=True,
    help="Let one of the two tenants be untrusted, so that its runs have the level process.",
)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that keeps logs, timeline and evidence; without it they are removed.",
)
def main(
    *,
    seconds: float,
    seed: int | None,
    runs_at_once: int,
    workers: int,
    untrusted: bool,
    logs: Path | None,
) -> None:
    """Run blueprints of all guarantees while workers and servers are killed; exit code 1 if a promise is broken."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    progress(f"seed {seed}, {seconds:.0f} s, {runs_at_once} runs at once, {workers} workers")
    try:
        with _stage(logs) as (servers, customer, folder):
            from trials.chaos.scenario import Size  # noqa: PLC0415 - models need Django set up

            size = Size(seconds=seconds, seed=seed, at_once=runs_at_once, workers=workers)
            result = _run(servers, customer, folder, size, plan.TENANTS[1:] if untrusted else ())
    except StopRequested:
        progress("stopped")
        raise SystemExit(130) from None
    _report(seed, result)
    sys.exit(1 if result.findings else 0)


@contextmanager
def _stage(logs: Path | None) -> Iterator[tuple[Servers, Customer, Path]]:
    with ExitStack() as stack:
        embedded, _, folder = stack.enter_context(prepared_servers("chaos"))
        servers = Servers(embedded=embedded)
        stack.callback(servers.stop)
        servers.start()
        embedded.bootstrap()
        customer = stack.enter_context(running_customer(embedded.paths))
        configure(embedded, nodes=NODES, ISOLANE_RESOURCE_NETWORKS=LOOPBACK)
        yield servers, customer, log_folder(logs, folder / "logs")


def _run(
    servers: Servers,
    customer: Customer,
    logs: Path,
    size: "Size",
    untrusted: Sequence[str],
) -> "ChaosResult":
    from trials.chaos.observer import Observer  # noqa: PLC0415 - models need Django set up
    from trials.chaos.scenario import ChaosScenario  # noqa: PLC0415

    trusted = [schema for schema in plan.TENANTS if schema not in untrusted]
    tenants = create_tenants(trusted, untrusted, actor="chaos")
    with tempfile.TemporaryDirectory(prefix="isolane-chaos-") as home:
        scenario = ChaosScenario(
            *tenants,
            servers,
            Observer(customer),
            size,
            logs=logs,
            home=Path(home),
            progress=progress,
        )
        return scenario.run()


def _report(seed: int, result: "ChaosResult") -> None:
    click.echo(f"seed {seed}")
    print_counts("runs", result.runs)
    print_counts("levels", result.levels)
    print_counts("faults", result.faults)
    print_counts("events", result.events)
    print_counts("task events", result.tasks)
    print_counts("links that failed", result.links_failed)
    print_counts("attempts that were interrupted", result.interrupted)
    click.echo(f"steps started, as observed: {result.starts}")
    click.echo(f"longest time without a start: {result.longest_gap_s:.1f} s")
    times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in result.times.items())
    click.echo(f"times: {times}")
    for finding in result.findings[:SHOWN]:
        click.echo(f"FOUND: {finding}")
    kinds = Counter(finding.kind for finding in result.findings)
    click.echo(", ".join(f"{kind} {kinds[kind]}" for kind in COUNTED))
    click.echo(f"{len(result.findings)} findings" if result.findings else "every promise was kept")


if __name__ == "__main__":
    main()
