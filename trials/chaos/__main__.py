"""`python -m trials.chaos`: servers, workers, a chaos, and what a judge outside of the platform has found.

Timing: a long-running process of its own. Model: sync, main thread. Guarantee: best-effort; what it starts ends with
it, and its directory goes, unless it is killed. Failure: exit code 1 with a list of what was found, or a trace.
"""

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench import environment
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import StopRequested, Supervisor
from orchestrator.env import PROJECT_ROOT
from tests.customer import Customer, running_customer
from trials.chaos import plan
from trials.chaos.findings import Kind
from trials.chaos.servers import Servers

if TYPE_CHECKING:
    from trials.chaos.chaos import Aftermath, Size

NODES = "tests.acceptance.chaos_nodes"
QUOTA = 1000
SHOWN = 50  # findings
COUNTED = (Kind.LOST, Kind.AGAIN, Kind.SLOT, Kind.PROCESS)


@click.command()
@click.option("--seconds", type=click.FloatRange(10, 86_400), default=60, show_default=True)
@click.option("--seed", type=int, help="Of an earlier chaos; a new one is drawn and shown.")
@click.option("--runs-at-once", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--workers", type=click.IntRange(2, 8), default=3, show_default=True)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the logs of workers, servers and weather stay; else they go with the chaos.",
)
def main(
    *, seconds: float, seed: int | None, runs_at_once: int, workers: int, logs: Path | None
) -> None:
    """Runs of mixed guarantees while workers, children and servers are killed; exit code 1 if a promise was broken."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    _say(f"seed {seed}, {seconds:.0f} s, {runs_at_once} runs at once, {workers} workers")
    try:
        with _stage(logs) as (servers, customer, folder):
            from trials.chaos.chaos import Size  # noqa: PLC0415 - models need Django set up

            size = Size(seconds=seconds, seed=seed, at_once=runs_at_once, workers=workers)
            aftermath = _chaos(servers, customer, folder, size)
    except StopRequested:
        _say("stopped")
        raise SystemExit(130) from None
    _report(seed, aftermath)
    sys.exit(1 if aftermath.findings else 0)


@contextmanager
def _stage(logs: Path | None) -> Iterator[tuple[Servers, Customer, Path]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isolane-chaos-")))
        paths = EmbeddedPaths(folder / "home")
        stack.callback(paths.remove)
        embedded = EmbeddedServers(paths, durable=False)
        embedded.prepare()
        stack.enter_context(Supervisor(paths.logs))  # for its care of signals
        servers = Servers(embedded=embedded)
        stack.callback(servers.stop)
        servers.start()
        embedded.bootstrap()
        customer = stack.enter_context(running_customer(paths))
        _point_at(embedded)
        place = logs or folder / "logs"
        place.mkdir(parents=True, exist_ok=True)
        yield servers, customer, place.resolve()


def _point_at(servers: EmbeddedServers) -> None:
    """The settings of this process and of the workers, before Django reads them."""
    ours = environment.platform(
        redis=servers.redis_url,
        login=servers.login_url,
        owner=servers.owner_url,
        secret_key=servers.secrets.django_secret_key,
        encryption_key=servers.secrets.encryption_key,
    )
    clean = environment.clean(os.environ)
    os.environ.clear()
    os.environ.update(
        clean | ours | {"ISOLANE_NODE_PACKAGES": NODES, "ISOLANE_NODE_PATHS": str(PROJECT_ROOT)}
    )
    from orchestrator.cli.support.django import setup_django  # noqa: PLC0415 - the settings come first

    setup_django()


def _chaos(servers: Servers, customer: Customer, logs: Path, size: "Size") -> "Aftermath":
    from tenants.provisioner import work_off  # noqa: PLC0415
    from tenants.provisioning import migrate  # noqa: PLC0415
    from tenants.selectors import tenant_by_schema  # noqa: PLC0415
    from tenants.services.tenants import create_tenant  # noqa: PLC0415
    from trials.chaos.chaos import Chaos  # noqa: PLC0415 - models need Django set up
    from trials.chaos.judge import Judge  # noqa: PLC0415

    migrate()
    for schema in plan.TENANTS:
        create_tenant(schema=schema, trusted=True, max_running=QUOTA, actor="chaos")
    work_off()
    tenants = [tenant_by_schema(schema) for schema in plan.TENANTS]
    with tempfile.TemporaryDirectory(prefix="isolane-chaos-") as home:
        chaos = Chaos(tenants, servers, Judge(customer), size, logs=logs, home=Path(home), say=_say)
        return chaos.unleash()


def _report(seed: int, aftermath: "Aftermath") -> None:
    click.echo(f"seed {seed}")
    for title, counted in (
        ("runs", aftermath.runs),
        ("calamities", aftermath.calamities),
        ("events", aftermath.events),
        ("tasks heard of", aftermath.tasks),
        ("links that failed", aftermath.links_failed),
        ("attempts that were cut in the middle", aftermath.cuts),
    ):
        click.echo(f"{title}: {counted.total()}")
        for how, number in sorted(counted.items()):
            click.echo(f"  {number:6} {how}")
    click.echo(f"steps begun, as the judge has heard: {aftermath.starts}")
    click.echo(f"longest time in which none began: {aftermath.silence_s:.1f} s")
    times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in aftermath.times.items())
    click.echo(f"times: {times}")
    for finding in aftermath.findings[:SHOWN]:
        click.echo(f"FOUND: {finding}")
    kinds = Counter(finding.kind for finding in aftermath.findings)
    click.echo(", ".join(f"{kind} {kinds[kind]}" for kind in COUNTED))
    click.echo(
        f"{len(aftermath.findings)} findings" if aftermath.findings else "every promise was kept"
    )


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)


if __name__ == "__main__":
    main()
