"""`python -m trials.siege`: attack a whole platform while one of its tenants works, and report what that tenant sees.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: best-effort; unless it is killed, it stops all it started and removes its directory.
Failure: exit code 1 with a list of broken promises, or a traceback.
"""

import sys
from pathlib import Path

import click

from bench import machine
from orchestrator.embedded.supervisor import StopRequested
from trials.output import progress
from trials.siege import plan, report, verdict
from trials.siege.platform import running_platform
from trials.siege.siege import Siege


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(5, 3600),
    default=60,
    show_default=True,
    help="Length of the attack. Idle and control take a third of it each, at least 8.",
)
@click.option(
    "--slowest",
    type=click.FloatRange(min=1),
    default=verdict.SLOWEST,
    show_default=True,
    help="Allowed p95 as a multiple of idle; raise it on a shared machine.",
)
@click.option("--workers", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that keeps the end of each log; without it the logs are removed.",
)
def main(*, seconds: float, slowest: float, workers: int, logs: Path | None) -> None:
    """Attack a platform in every way at once while a tenant works; exit code 1 if a promise is broken."""
    click.echo(f"load before: {machine.load()}")
    try:
        with running_platform(workers=workers, kept_logs=logs) as platform:
            progress("the platform is up")
            result = Siege(platform, progress).run(plan.phases(seconds))
    except StopRequested:
        progress("stopped")
        raise SystemExit(130) from None
    for line in report.lines(result):
        click.echo(line)
    broken = verdict.broken(result, slowest)
    for line in broken:
        click.echo(f"BROKEN: {line}")
    click.echo(f"{len(broken)} promises were broken" if broken else "every promise was kept")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
