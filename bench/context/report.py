"""The printed tables and the JSON document. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.context.chains import CHAINS
from bench.context.figures import LIMIT, Cost, Measured, Row, rows
from bench.figures import Spread


def tables(measured: Sequence[Measured]) -> Iterator[Table]:
    """Yield the table of costs, then the table of CPU time by process."""
    found = rows(measured)
    yield _costs(found)
    yield _processes(found)


def verdicts(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield one line per figure and per count of connections."""
    found = rows(measured)
    for row in found:
        for what, cost in (("under load", row.run_ms), ("idle", row.idle_ms)):
            word = "under" if cost.is_under_limit else "NOT under"
            doubt = "" if cost.is_certain else ", but not for certain"
            percent = f"{cost.percent.median:+.1f} %"
            yield f"{row.chain} against {row.baseline}, {what}: {percent}, {word} {LIMIT:.0f} %{doubt}"
    for chain, row in {row.chain: row for row in found}.items():
        if row.connections is not None:
            word = "exactly one per run" if row.one_each else "NOT exactly one per run"
            yield f"{chain}, connections: {word} ({row.connections:.3f})"


def document(
    measured: Sequence[Measured], machine: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, Any]:
    """Return all samples, the rows made from them, and the verdicts."""
    return {
        "machine": dict(machine),
        "notes": list(notes),
        "verdicts": list(verdicts(measured)),
        "rows": [asdict(row) for row in rows(measured)],
        "samples": [
            {**asdict(one.sample), "visits": asdict(one.visits), "mode": one.contender.mode}
            for one in measured
        ],
    }


def _costs(found: Sequence[Row]) -> Table:
    table = Table("chain", "without", "figure", title="ten steps, with the context and without")
    for heading in ("with", "without", "added %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found:
        table.add_section()
        table.add_row(row.chain, row.baseline, "runs/s", *_rates(row.run_ms))
        table.add_row("", "", "idle ms", *_cells(row.idle_ms))
        table.add_row("", "", "CPU ms/run", *_cells(row.cpu_ms))
    table.caption = "; ".join(f"{chain}: {what}" for chain, what in CHAINS.items())
    return table


def _rates(cost: Cost) -> list[str]:
    """Return runs per second; the percentage is of the time per run."""
    return [_spread(_inverse(cost.on)), _spread(_inverse(cost.off)), _spread(cost.percent)]


def _cells(cost: Cost) -> list[str]:
    return [_spread(cost.on), _spread(cost.off), _spread(cost.percent)]


def _processes(found: Sequence[Row]) -> Table:
    table = Table("chain", "without", "process", title="CPU ms per run")
    for heading in ("with", "without"):
        table.add_column(heading, justify="right")
    for row in found:
        table.add_section()
        for kind in sorted({*row.cpu_on, *row.cpu_off}):
            on, off = row.cpu_on.get(kind, 0.0), row.cpu_off.get(kind, 0.0)
            table.add_row(row.chain, row.baseline, kind, f"{on:.2f}", f"{off:.2f}")
    return table


def _inverse(value: Spread) -> Spread:
    return Spread(median=1000 / value.median, least=1000 / value.most, most=1000 / value.least)


def _spread(value: Spread) -> str:
    return f"{value.median:.1f} ({value.least:.1f}..{value.most:.1f})"
