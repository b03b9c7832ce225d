"""`python -m trials.storm`: servers, workers, a storm, and the list of what it has left.

Timing: a long-running process of its own. Model: sync, main thread. Guarantee: best-effort; what it starts ends with
it, and its directory goes, unless it is killed. Failure: exit code 1 with a list of what is left, or a trace.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import redis

from bench import environment
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import StopRequested, Supervisor
from orchestrator.env import PROJECT_ROOT
from tests.customer import Customer, running_customer
from tests.recorder import Recorder
from trials.storm import plan

NODES = "tests.acceptance.storm_nodes"
LOOPBACK = "127.0.0.0/8"
QUOTA = 1000
SHOWN = 50  # of what is left


@click.command()
@click.option("--runs", type=click.IntRange(1, 100_000), default=1000, show_default=True)
@click.option("--seed", type=int, help="Of an earlier storm; a new one is drawn and shown.")
@click.option("--workers", type=click.IntRange(2, 8), default=3, show_default=True)
@click.option("--freeze/--no-freeze", default=True, help="Stop a worker for longer than its lease.")
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the workers' logs stay; else they go with the storm.",
)
def main(*, runs: int, seed: int | None, workers: int, freeze: bool, logs: Path | None) -> None:
    """Many runs of two tenants that misbehave in every way, then a look at what is left; exit code 1 if anything is."""
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    _say(f"seed {seed}, {runs} runs, {workers} workers")
    try:
        with _stage(logs) as (servers, customer, folder):
            left = _storm(
                servers, customer, folder, runs=runs, seed=seed, workers=workers, freeze=freeze
            )
    except StopRequested:
        _say("stopped")
        raise SystemExit(130) from None
    for line in left[:SHOWN]:
        click.echo(f"LEFT: {line}")
    click.echo(f"{len(left)} things are left" if left else "nothing is left")
    sys.exit(1 if left else 0)


@contextmanager
def _stage(logs: Path | None) -> Iterator[tuple[EmbeddedServers, Customer, Path]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isolane-storm-")))
        paths = EmbeddedPaths(folder / "home")
        stack.callback(paths.remove)
        servers = EmbeddedServers(paths, durable=False)
        servers.prepare()
        supervisor = stack.enter_context(Supervisor(paths.logs))
        for server in servers.children():
            supervisor.start(server)
        servers.bootstrap()
        customer = stack.enter_context(running_customer(paths))
        _point_at(servers)
        workers = logs or folder / "workers"
        workers.mkdir(parents=True, exist_ok=True)
        yield servers, customer, workers.resolve()


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
        clean
        | ours
        | {
            "ISOLANE_CACHE_URL": servers.cache_url,
            "ISOLANE_RESOURCE_NETWORKS": LOOPBACK,
            "ISOLANE_NODE_PACKAGES": NODES,
            "ISOLANE_NODE_PATHS": str(PROJECT_ROOT),
        }
    )


def _storm(servers: EmbeddedServers, customer: Customer, folder: Path, **size: Any) -> list[str]:
    from orchestrator.cli.support.django import setup_django  # noqa: PLC0415 - the settings come first

    setup_django()
    from tenants.provisioner import work_off  # noqa: PLC0415
    from tenants.provisioning import migrate  # noqa: PLC0415
    from tenants.selectors import tenant_by_schema  # noqa: PLC0415
    from tenants.services.tenants import create_tenant  # noqa: PLC0415
    from trials.storm.leftovers import FarSides  # noqa: PLC0415 - models need Django set up
    from trials.storm.storm import Size, raise_storm  # noqa: PLC0415

    migrate()
    for schema in plan.TENANTS:
        create_tenant(schema=schema, trusted=True, max_running=QUOTA, actor="storm")
    work_off()
    tenants = [tenant_by_schema(schema) for schema in plan.TENANTS]
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder().serving())
        cache = stack.enter_context(redis.Redis.from_url(servers.cache_url, decode_responses=True))
        far = FarSides(customer=customer, recorder=recorder, cache=cache)
        began = time.monotonic()
        aftermath = raise_storm(tenants, far, folder, Size(**size), say=_say)
    for title, counted in (
        ("steps", aftermath.moods),
        ("runs", aftermath.runs),
        ("records", aftermath.records),
    ):
        click.echo(f"{title}: {counted.total()}")
        for how, number in sorted(counted.items()):
            click.echo(f"  {number:6} {how}")
    click.echo(f"at the far sides at once, at most: {aftermath.seen.most}")
    _tell_late(aftermath.seen.longest)
    _say(
        f"{time.monotonic() - began:.0f} s, settled {aftermath.settled_s:.1f} s after the last run"
    )
    return aftermath.left


def _tell_late(longest: Mapping[UUID, tuple[float, str]]) -> None:
    """Not a failure: a far side hears of the end of a killed worker when it is swept."""
    click.echo(f"runs of which a far side still had something after their end: {len(longest)}")
    for seconds, line in sorted(longest.values(), reverse=True)[:10]:
        click.echo(f"  {seconds:6.1f} s {line}")


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)


if __name__ == "__main__":
    main()
