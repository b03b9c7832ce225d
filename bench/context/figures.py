"""What the context costs: with it against each way of doing without, within each round. Pure."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.context.chains import BASELINES, Contender
from bench.context.visits import Visits
from bench.figures import Sample, Spread, spread

LIMIT = 10.0  # percent
DOUBT = 0.05  # how often a median may lie outside of what is said of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A sample, and who came to the customer meanwhile."""

    contender: Contender
    sample: Sample
    visits: Visits

    @property
    def runs(self) -> int:
        """All of them: of the drain, and one by one."""
        return self.sample.runs + len(self.sample.latencies_ms)

    @property
    def latency_ms(self) -> float:
        """The median of the single runs."""
        return statistics.median(self.sample.latencies_ms)

    @property
    def cpu_ms(self) -> float:
        """Of all processes, per run."""
        return sum(self.sample.cpu_ms.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One figure of one chain: with, without, and what is added, in percent of what it is without."""

    on: Spread
    off: Spread
    percent: Spread  # least and most: between which the median of more rounds would lie

    @property
    def is_under_limit(self) -> bool:
        """Whether the middle of the rounds is."""
        return self.percent.median < LIMIT

    @property
    def is_certain(self) -> bool:
        """Whether so is all of where it may lie."""
        return self.is_under_limit == (self.percent.most < LIMIT) == (self.percent.least < LIMIT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One chain, against one way of doing without the context."""

    chain: str
    baseline: str
    run_ms: Cost  # of a run under load: one second by the runs that ended in it
    idle_ms: Cost
    cpu_ms: Cost
    cpu_on: Mapping[str, float]
    cpu_off: Mapping[str, float]
    connections: float | None  # per run with the context; none where nothing is opened
    one_each: bool


def rows(measured: Sequence[Measured]) -> list[Row]:
    """One per chain and baseline that were measured."""
    seen = {one.contender for one in measured}
    return [
        _row(chain, baseline, measured)
        for chain, baselines in BASELINES.items()
        for baseline in baselines
        if {Contender(chain, "on"), Contender(chain, baseline)} <= seen
    ]


def middle(values: Sequence[float]) -> Spread:
    """The median, and the two values between which it lies for all but DOUBT (of few values: the first and the last).

    By the sign test: however values are distributed, each is above the true median as often as below.
    """
    ordered, outside = sorted(values), 0
    while 2 * _tail(len(ordered), outside + 2) <= DOUBT:
        outside += 1
    return Spread(
        median=statistics.median(ordered), least=ordered[outside], most=ordered[-1 - outside]
    )


def _tail(throws: int, fewer_than: int) -> float:
    """How likely a coin is to show heads less often than that."""
    return float(sum(math.comb(throws, heads) for heads in range(fewer_than)) / 2**throws)


def _row(chain: str, baseline: str, measured: Sequence[Measured]) -> Row:
    on, off = (_of(chain, mode, measured) for mode in ("on", baseline))
    visitors = [one for one in on if one.contender.visits]
    runs = sum(one.runs for one in visitors)
    came = sum(one.visits.connections for one in visitors)
    return Row(
        chain=chain,
        baseline=baseline,
        run_ms=_cost(on, off, lambda one: 1000 / one.sample.rate),
        idle_ms=_cost(on, off, lambda one: one.latency_ms),
        cpu_ms=_cost(on, off, lambda one: one.cpu_ms),
        cpu_on=_by_process(on),
        cpu_off=_by_process(off),
        connections=came / runs if runs else None,
        one_each=all(one.visits.are_one_each(one.runs) for one in visitors),
    )


def _of(chain: str, mode: str, measured: Sequence[Measured]) -> list[Measured]:
    mine = [one for one in measured if one.contender == Contender(chain, mode)]
    return sorted(mine, key=lambda one: one.sample.round)


def _cost(
    on: Sequence[Measured], off: Sequence[Measured], figure: Callable[[Measured], float]
) -> Cost:
    with_it, without = [figure(one) for one in on], [figure(one) for one in off]
    added = [(mine / theirs - 1) * 100 for mine, theirs in zip(with_it, without, strict=True)]
    return Cost(on=spread(with_it), off=spread(without), percent=middle(added))


def _by_process(measured: Sequence[Measured]) -> dict[str, float]:
    kinds = sorted({kind for one in measured for kind in one.sample.cpu_ms})
    return {
        kind: statistics.median(one.sample.cpu_ms.get(kind, 0.0) for one in measured)
        for kind in kinds
    }
