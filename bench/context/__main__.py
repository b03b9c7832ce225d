"""`python -m bench.context`: compare runs with the context and without it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench import machine
from bench.context import report
from bench.context.chains import CONTENDERS, STEPS
from bench.context.measure import measure
from bench.context.stage import stage
from bench.driver import ContenderFailed
from bench.measure import ready, warm_up
from bench.plan import FULL, QUICK, Size
from bench.profile import profile_drain, tables
from orchestrator.embedded.supervisor import StopRequested

WIDTH = 120
# Many short rounds: the difference is a few percent, and machines vary by more within seconds.
LONG = replace(FULL, rounds=40, seconds=0.8, latencies=3)
OUT = Console(highlight=False, width=WIDTH)
ERR = Console(highlight=False, stderr=True, width=WIDTH)


@click.command()
@click.option("--rounds", type=click.IntRange(1, 100), help="Number of rounds. Default: 40.")
@click.option("--quick", is_flag=True, help="Only show that it works; the figures mean nothing.")
@click.option("--profile", is_flag=True, help="Show where the time goes, instead of the tables.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(*, rounds: int | None, quick: bool, profile: bool, json_file: Path | None) -> None:
    """Compare chains of ten steps with the context and without it, on this machine, with embedded servers."""
    chosen = QUICK if quick else LONG
    size = replace(chosen, rounds=rounds or chosen.rounds, steps=(STEPS,))
    try:
        if profile:
            _profile(size)
        else:
            _run(size, json_file)
    except StopRequested:
        ERR.print("Stopped.")
        raise SystemExit(130) from None
    except ContenderFailed as failed:
        raise click.ClickException(str(failed)) from None


def _run(size: Size, json_file: Path | None) -> None:
    at, load_before = datetime.now(UTC), machine.load()
    with stage() as set_up:
        found = {
            "at": f"{at:%Y-%m-%d %H:%M} UTC",
            **machine.describe(
                load_before=load_before,
                data=set_up.servers.paths.postgres_data,
                postgres=set_up.postgres_version,
                valkey=set_up.valkey_version,
            ),
        }
        _, notes = ready(set_up, _progress)
        runs = warm_up(set_up, list(CONTENDERS), size, _progress)
        measured = measure(set_up, size, runs, _progress)
    found["load_after"] = machine.load()
    if machine.is_busy(found):
        notes.append("the machine was busy at the start; measure again on an idle machine")
    for table in report.tables(measured):
        OUT.print(table)
    for line in report.verdicts(measured):
        OUT.print(line)
    OUT.print(", ".join(f"{name} {value}" for name, value in found.items()))
    for note in notes:
        OUT.print(f"Note: {note}")
    if json_file:
        text = json.dumps(report.document(measured, found, notes), indent=1)
        json_file.write_text(text + "\n", encoding="utf-8")


def _profile(size: Size) -> None:
    with stage(profile=True) as set_up:
        ready(set_up, _progress)
        runs = warm_up(set_up, list(CONTENDERS), size, _progress)
        for name, steps in runs:
            seen = profile_drain(set_up, name, steps=steps, runs=runs[name, steps])
            for table in tables(name, steps, seen):
                OUT.print(table)


def _progress(line: str) -> None:
    ERR.print(f"  {line}", style="dim")


if __name__ == "__main__":
    main()
