"""`python -m bench.levels`: compare the levels of isolation, with few and many tenants."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench import machine
from bench.driver import ContenderFailed
from bench.levels import report
from bench.levels.contenders import STEPS, names
from bench.levels.measure import measure, warm_up
from bench.levels.stage import stage
from bench.measure import ready
from bench.plan import FULL, QUICK, Size
from bench.profile import profile_drain, tables
from orchestrator.embedded.supervisor import StopRequested

WIDTH = 140
OUT = Console(highlight=False, width=WIDTH)
ERR = Console(highlight=False, stderr=True, width=WIDTH)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Numbers with commas between them."""

    name = "numbers"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return them in order."""
        try:
            found = sorted({int(number) for number in value.split(",")})
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers", param, ctx)
        if found[0] < 1:
            self.fail("a number of tenants is at least 1", param, ctx)
        return tuple(found)


@click.command()
@click.option("--rounds", type=click.IntRange(1, 100), help="Number of rounds. Default: 5.")
@click.option("--tenants", type=Numbers(), default="2,40,300", show_default=True)
@click.option("--only", multiple=True, help="Measure only contenders whose name begins so.")
@click.option("--quick", is_flag=True, help="Only show that it works; the figures mean nothing.")
@click.option("--profile", is_flag=True, help="Show where the time goes, instead of the table.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(
    *,
    rounds: int | None,
    tenants: tuple[int, ...],
    only: Sequence[str],
    quick: bool,
    profile: bool,
    json_file: Path | None,
) -> None:
    """Compare runs of the levels with bare forks, on this machine, with embedded servers."""
    chosen = QUICK if quick else replace(FULL, latencies=20)
    size = replace(chosen, rounds=rounds or chosen.rounds, steps=STEPS)
    wanted = [name for name in names(tenants) if not only or name.startswith(tuple(only))]
    try:
        if profile:
            _profile(wanted, size)
        else:
            _run(wanted, size, json_file)
    except StopRequested:
        ERR.print("Stopped.")
        raise SystemExit(130) from None
    except ContenderFailed as failed:
        raise click.ClickException(str(failed)) from None


def _run(wanted: list[str], size: Size, json_file: Path | None) -> None:
    at, load_before = datetime.now(UTC), machine.load()
    with stage(wanted, _progress) as set_up:
        found = {
            "at": f"{at:%Y-%m-%d %H:%M} UTC",
            **machine.describe(
                load_before=load_before,
                data=set_up.servers.paths.postgres_data,
                postgres=set_up.postgres_version,
                valkey=set_up.valkey_version,
            ),
        }
        left, notes = ready(set_up, _progress)
        runs = warm_up(set_up, left, size, _progress)
        measured = measure(set_up, left, size, runs, _progress)
    found["load_after"] = machine.load()
    if machine.is_busy(found):
        notes.append("the machine was busy at the start; measure again on an idle machine")
    OUT.print(report.table(measured))
    for line in (*report.aims(measured), *(f"Note: {note}" for note in notes)):
        OUT.print(line)
    OUT.print(", ".join(f"{name} {value}" for name, value in found.items()))
    if json_file:
        text = json.dumps(report.document(measured, found, notes), indent=1)
        json_file.write_text(text + "\n", encoding="utf-8")


def _profile(wanted: list[str], size: Size) -> None:
    with stage(wanted, _progress, profile=True) as set_up:
        left, _ = ready(set_up, _progress)
        runs = warm_up(set_up, left, size, _progress)
        for name, steps in runs:
            seen = profile_drain(set_up, name, steps=steps, runs=runs[name, steps])
            for table in tables(name, steps, seen):
                OUT.print(table)


def _progress(line: str) -> None:
    ERR.print(f"  {line}", style="dim")


if __name__ == "__main__":
    main()
