"""The printed table, the aims, and the JSON document. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.levels.contenders import LEVELS, TITLES
from bench.levels.figures import LevelRow, Measured, rows, verdicts
from bench.report import spread_text

HEADINGS = (
    "runs/s", "x fewest", "x sandboxes", "start ms", "p95", "loaded", "CPU ms/run", "MB/run",
)  # fmt: skip


def table(measured: Sequence[Measured]) -> Table:
    """Return one line per number of steps, contender and number of tenants; medians of the rounds."""
    shown = Table()
    for heading in ("steps", "contender", "tenants"):
        shown.add_column(heading)
    for heading in HEADINGS:
        shown.add_column(heading, justify="right", no_wrap=True)
    before = None
    for row in rows(measured):
        if before not in {None, row.steps}:
            shown.add_section()
        before = row.steps
        shown.add_row(*_cells(row))
    return shown


def aims(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield one line per aim."""
    for verdict in verdicts(measured):
        word = "met" if verdict.is_met else "NOT met"
        yield f"{verdict.aim}: {verdict.found:.3g}, aim {verdict.limit:g}: {word}"


def document(
    measured: Sequence[Measured], machine: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, Any]:
    """Return all that was measured, and the rows made from it."""
    return {
        "machine": dict(machine),
        "notes": list(notes),
        "aims": list(aims(measured)),
        "rows": [asdict(row) for row in rows(measured)],
        "samples": [asdict(one) for one in measured],
    }


def _cells(row: LevelRow) -> list[str]:
    return [
        str(row.steps),
        TITLES[row.kind],
        str(row.tenants) if row.kind in LEVELS else "",
        spread_text(row.rate),
        _figure(row.of_few, 2),
        _figure(row.of_sandboxes, 2),
        spread_text(row.start_ms),
        _figure(row.start_p95_ms, 1),
        _figure(row.loaded_start_ms, 1),
        _figure(row.cpu_ms, 1),
        _figure(row.ram_mb, 1),
    ]


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
