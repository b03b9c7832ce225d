"""Rows of the table, and what is held against the aims. Pure."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.figures import Sample, Spread, percentile, ratio, spread
from bench.levels.contenders import (
    BARE_STEPS,
    LEVELS,
    SANDBOXES,
    TITLES,
    Runs,
    kind_of,
    tenants_of,
)

# Aims: of the rate with many tenants to that with few, of `process` at one step, of its start and its RAM.
MANY_OF_FEW = {"process": 0.95, "shared": 0.7}
LEAST_RATE = 100.0
LEAST_OF_SANDBOXES = 0.5
MOST_START_MS = 40.0
MOST_MB = 15.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one round found of one contender."""

    sample: Sample
    starts_ms: Sequence[float]  # one at a time
    loaded_starts_ms: Sequence[float]  # during the drain
    ram_mb: float | None  # of a run while its step runs


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelRow:
    """One line of the table."""

    kind: str
    tenants: int
    steps: int
    rate: Spread
    of_few: float | None  # to the fewest tenants of the same level
    of_sandboxes: float | None
    start_ms: Spread  # medians of the rounds
    start_p95_ms: float
    loaded_start_ms: float
    cpu_ms: float
    ram_mb: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One aim, and what was found."""

    aim: str
    found: float
    limit: float
    is_met: bool


def rows(measured: Sequence[Measured]) -> list[LevelRow]:
    """Return one row per number of steps, contender and number of tenants."""
    keys = {(one.sample.steps, one.sample.contender) for one in measured}
    order = list(TITLES)
    ordered = sorted(
        keys, key=lambda key: (key[0], order.index(kind_of(key[1])), tenants_of(key[1]))
    )
    return [_row(measured, name, steps) for steps, name in ordered]


def verdicts(measured: Sequence[Measured]) -> Iterator[Verdict]:
    """Yield what was measured of the aims."""
    found = {(row.kind, row.tenants, row.steps): row for row in rows(measured)}
    most = max(tenants for _, tenants, _ in found)
    for (kind, tenants, steps), row in found.items():
        if kind in MANY_OF_FEW and tenants == most and row.of_few is not None:
            aim = f"{kind}, {steps} steps: {tenants} tenants to the fewest"
            yield _at_least(aim, row.of_few, MANY_OF_FEW[kind])
    for (kind, tenants, steps), row in found.items():
        if kind == "process" and steps == 1:
            yield from _of_process(tenants, row)


def _of_process(tenants: int, row: LevelRow) -> Iterator[Verdict]:
    name = f"process, {tenants} tenants"
    rate = _at_least(f"{name}: runs/s", row.rate.median, LEAST_RATE)
    if row.of_sandboxes is None or rate.is_met:
        yield rate
    else:
        yield _at_least(f"{name}: of bare sandboxes", row.of_sandboxes, LEAST_OF_SANDBOXES)
    yield _at_most(f"{name}: start p50 in ms", row.start_ms.median, MOST_START_MS)
    if row.ram_mb is not None:
        yield _at_most(f"{name}: private MB per run", row.ram_mb, MOST_MB)


def _at_least(aim: str, found: float, limit: float) -> Verdict:
    return Verdict(aim=aim, found=found, limit=limit, is_met=found >= limit)


def _at_most(aim: str, found: float, limit: float) -> Verdict:
    return Verdict(aim=aim, found=found, limit=limit, is_met=found <= limit)


def _row(measured: Sequence[Measured], name: str, steps: int) -> LevelRow:
    mine = [one for one in measured if (one.sample.contender, one.sample.steps) == (name, steps)]
    samples = [one.sample for one in measured]
    ram = [one.ram_mb for one in mine if one.ram_mb is not None]
    return LevelRow(
        kind=kind_of(name),
        tenants=tenants_of(name),
        steps=steps,
        rate=spread([one.sample.rate for one in mine]),
        of_few=_to_few(samples, name, steps),
        of_sandboxes=ratio(samples, (name, steps), (SANDBOXES, BARE_STEPS)),
        start_ms=spread([statistics.median(one.starts_ms) for one in mine]),
        start_p95_ms=percentile([ms for one in mine for ms in one.starts_ms], 95),
        loaded_start_ms=statistics.median(ms for one in mine for ms in one.loaded_starts_ms),
        cpu_ms=statistics.median(sum(one.sample.cpu_ms.values()) for one in mine),
        ram_mb=statistics.median(ram) if ram else None,
    )


def _to_few(samples: Sequence[Sample], name: str, steps: int) -> float | None:
    level = kind_of(name)
    if level not in LEVELS:
        return None
    numbers = [tenants_of(one.contender) for one in samples if kind_of(one.contender) == level]
    return ratio(samples, (name, steps), (Runs(level, min(numbers)).name, steps))
