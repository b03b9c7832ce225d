"""`python -m trials.siege`: a whole platform, every attack on its front door at once, and what a tenant sees of it.

Timing: a long-running process of its own. Model: sync, main thread. Guarantee: best-effort; what it starts ends with
it, and its directory goes, unless it is killed. Failure: exit code 1 with a list of broken promises, or a trace.
"""

import sys
from pathlib import Path

import click

from bench import machine
from orchestrator.embedded.supervisor import StopRequested
from trials.siege import plan, report, verdict
from trials.siege.platform import running_platform
from trials.siege.siege import Besieged


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(5, 3600),
    default=60,
    show_default=True,
    help="Of the attack; idle and control take a third of it each, and at least 8.",
)
@click.option(
    "--slowest",
    type=click.FloatRange(min=1),
    default=verdict.SLOWEST,
    show_default=True,
    help="How many times the p95 of idle is allowed; more on a machine that others use.",
)
@click.option("--workers", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the ends of all logs stay; else they go with the siege.",
)
def main(*, seconds: float, slowest: float, workers: int, logs: Path | None) -> None:
    """Attack a platform in every way at once while a tenant works; exit code 1 if a promise was broken."""
    click.echo(f"load before: {machine.load()}")
    try:
        with running_platform(workers=workers, kept_logs=logs) as platform:
            _say("the platform is up")
            siege = Besieged(platform, _say).run(plan.phases(seconds))
    except StopRequested:
        _say("stopped")
        raise SystemExit(130) from None
    for line in report.lines(siege):
        click.echo(line)
    broken = verdict.broken(siege, slowest)
    for line in broken:
        click.echo(f"BROKEN: {line}")
    click.echo(f"{len(broken)} promises were broken" if broken else "every promise was kept")
    sys.exit(1 if broken else 0)


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)


if __name__ == "__main__":
    main()
