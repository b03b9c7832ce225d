"""`python -m bench`: compare the platform with plain and durable Celery chains."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench import machine, report
from bench.contenders import MODULES, PLATFORM
from bench.driver import ContenderFailed
from bench.measure import measure, ready, warm_up
from bench.plan import FULL, QUICK, Size
from bench.profile import profile_drain, tables
from bench.stage import stage
from orchestrator.embedded.supervisor import StopRequested

WIDTH = 120
OUT = Console(highlight=False, width=WIDTH)
ERR = Console(highlight=False, stderr=True, width=WIDTH)


@click.command()
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(MODULES)),
    help="Measure only this contender; may be repeated.",
)
@click.option("--rounds", type=click.IntRange(1, 100), help="Number of rounds. Default: 5.")
@click.option(
    "--steps",
    multiple=True,
    type=click.IntRange(1, 10),
    help="Steps of a run; may be repeated. Default: 1, 3 and 10.",
)
@click.option("--quick", is_flag=True, help="Only show that it works; the figures mean nothing.")
@click.option(
    "--profile", is_flag=True, help="Show where the platform's time goes, instead of the table."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(
    *,
    only: Sequence[str],
    rounds: int | None,
    steps: Sequence[int],
    quick: bool,
    profile: bool,
    json_file: Path | None,
) -> None:
    """Compare the platform with chains that a team would write, on this machine, with embedded servers."""
    size = _size(quick=quick, rounds=rounds, steps=steps)
    names = [name for name in MODULES if not only or name in only]
    try:
        if profile:
            _profile([name for name in names if name in PLATFORM] or sorted(PLATFORM), size)
        else:
            _run(names, size, json_file)
    except StopRequested:
        ERR.print("Stopped.")
        raise SystemExit(130) from None
    except ContenderFailed as failed:
        raise click.ClickException(str(failed)) from None


def _size(*, quick: bool, rounds: int | None, steps: Sequence[int]) -> Size:
    size = QUICK if quick else FULL
    return replace(size, rounds=rounds or size.rounds, steps=tuple(steps) or size.steps)


def _run(names: list[str], size: Size, json_file: Path | None) -> None:
    at, load_before = datetime.now(UTC), machine.load()
    with stage(names) as set_up:
        found = {
            "at": f"{at:%Y-%m-%d %H:%M} UTC",
            **machine.describe(
                load_before=load_before,
                data=set_up.servers.paths.postgres_data,
                postgres=set_up.postgres_version,
                valkey=set_up.valkey_version,
            ),
        }
        names, notes = ready(set_up, _progress)
        runs = warm_up(set_up, names, size, _progress)
        samples = measure(set_up, names, size, runs, _progress)
    if machine.is_busy(found):
        notes.append("the machine was busy at the start; measure again on an idle machine")
    OUT.print(report.table(samples))
    OUT.print(", ".join(f"{name} {value}" for name, value in found.items()))
    for note in notes:
        OUT.print(f"Note: {note}")
    if json_file:
        text = json.dumps(report.document(samples, found, notes), indent=1)
        json_file.write_text(text + "\n", encoding="utf-8")


def _profile(names: list[str], size: Size) -> None:
    with stage(names, profile=True) as set_up:
        names, _ = ready(set_up, _progress)
        runs = warm_up(set_up, names, size, _progress)
        for name, steps in runs:
            seen = profile_drain(set_up, name, steps=steps, runs=runs[name, steps])
            for table in tables(name, steps, seen):
                OUT.print(table)


def _progress(line: str) -> None:
    ERR.print(f"  {line}", style="dim")


if __name__ == "__main__":
    main()
