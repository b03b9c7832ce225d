"""The printed table and the JSON document. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.figures import Row, Sample, Spread, rows

BASELINES = ("plain", "durable")
TITLES = {
    "plain": "plain",
    "durable": "durable",
    "chain": "isolane chain",
    "express": "isolane express",
}


def table(samples: Sequence[Sample]) -> Table:
    """Return one line per number of steps and contender; runs/s as median (minimum..maximum) of the rounds."""
    shown = Table()
    shown.add_column("steps", justify="right")
    shown.add_column("contender")
    for heading in ("runs/s", *(f"x {name}" for name in BASELINES), "idle ms", "p95", "CPU ms/run"):
        shown.add_column(heading, justify="right", no_wrap=True)
    before = None
    for row in _rows(samples):
        if before not in {None, row.steps}:
            shown.add_section()
        before = row.steps
        shown.add_row(*_cells(row))
    return shown


def document(
    samples: Sequence[Sample], machine: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, Any]:
    """Return all samples and the rows made from them."""
    return {
        "machine": dict(machine),
        "notes": list(notes),
        "rows": [asdict(row) for row in _rows(samples)],
        "samples": [asdict(sample) for sample in samples],
    }


def _rows(samples: Sequence[Sample]) -> list[Row]:
    return rows(samples, order=tuple(TITLES), baselines=BASELINES)


def _cells(row: Row) -> list[str]:
    ratios = [f"{row.ratios[name]:.2f}" if name in row.ratios else "" for name in BASELINES]
    return [
        str(row.steps),
        TITLES[row.contender],
        spread_text(row.rate),
        *ratios,
        spread_text(row.latency_ms),
        f"{row.latency_p95_ms:.1f}",
        f"{row.cpu_ms:.1f}",
    ]


def spread_text(value: Spread) -> str:
    """Return median (minimum..maximum)."""
    digits = 0 if value.median >= 100 else 1
    return f"{value.median:.{digits}f} ({value.least:.{digits}f}..{value.most:.{digits}f})"
