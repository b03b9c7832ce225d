"""Medians, spreads, and ratios within one round. Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Key = tuple[str, int]  # contender and number of steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Measurements of one contender with one number of steps in one round."""

    contender: str
    steps: int
    round: int
    runs: int
    seconds: float
    cpu_ms: Mapping[str, float]  # per run, by process
    latencies_ms: Sequence[float]

    @property
    def rate(self) -> float:
        """Return runs per second."""
        return self.runs / self.seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Median, minimum and maximum of some rounds."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table."""

    contender: str
    steps: int
    rate: Spread
    ratios: Mapping[str, float]  # to each baseline that was measured
    latency_ms: Spread
    latency_p95_ms: float
    cpu_ms: float


def spread(values: Sequence[float]) -> Spread:
    """Return median, minimum and maximum."""
    return Spread(median=statistics.median(values), least=min(values), most=max(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that this percentage of all values does not exceed."""
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def ratio(samples: Sequence[Sample], of: Key, to: Key) -> float | None:
    """Return the median of the ratios of each round: a slow minute of the machine slows both."""
    rates = {(sample.contender, sample.steps, sample.round): sample.rate for sample in samples}
    ratios = [
        rate / rates[(*to, number)]
        for (contender, steps, number), rate in rates.items()
        if (contender, steps) == of and (*to, number) in rates
    ]
    return statistics.median(ratios) if ratios else None


def rows(samples: Sequence[Sample], *, order: Sequence[str], baselines: Sequence[str]) -> list[Row]:
    """Return one row per number of steps and contender."""
    keys = {(sample.steps, sample.contender) for sample in samples}
    ordered = sorted(keys, key=lambda key: (key[0], order.index(key[1])))
    return [_row(samples, contender, steps, baselines) for steps, contender in ordered]


def _row(samples: Sequence[Sample], contender: str, steps: int, baselines: Sequence[str]) -> Row:
    mine = [sample for sample in samples if (sample.contender, sample.steps) == (contender, steps)]
    latencies = [value for sample in mine for value in sample.latencies_ms]
    found = {name: ratio(samples, (contender, steps), (name, steps)) for name in baselines}
    return Row(
        contender=contender,
        steps=steps,
        rate=spread([sample.rate for sample in mine]),
        ratios={name: value for name, value in found.items() if value is not None},
        latency_ms=spread([statistics.median(sample.latencies_ms) for sample in mine]),
        latency_p95_ms=percentile(latencies, 95),
        cpu_ms=statistics.median(sum(sample.cpu_ms.values()) for sample in mine),
    )
