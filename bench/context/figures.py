"""The cost of the context: with it, compared with each way without it, within each round. Pure."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.context.chains import BASELINES, Contender
from bench.context.visits import Visits
from bench.figures import Sample, Spread, spread

LIMIT = 10.0  # percent
DOUBT = 0.05  # probability that a median lies outside of its interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A sample, and the connections to the customer's server meanwhile."""

    contender: Contender
    sample: Sample
    visits: Visits

    @property
    def runs(self) -> int:
        """Return the number of all runs, of the drain and single ones."""
        return self.sample.runs + len(self.sample.latencies_ms)

    @property
    def latency_ms(self) -> float:
        """Return the median of the single runs."""
        return statistics.median(self.sample.latencies_ms)

    @property
    def cpu_ms(self) -> float:
        """Return CPU time of all processes per run."""
        return sum(self.sample.cpu_ms.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One figure of one chain with the context, without it, and the difference in percent."""

    on: Spread
    off: Spread
    percent: Spread  # least and most: the interval of the median

    @property
    def is_under_limit(self) -> bool:
        """Return True if the median is under the limit."""
        return self.percent.median < LIMIT

    @property
    def is_certain(self) -> bool:
        """Return True if the whole interval is on the same side of the limit."""
        return self.is_under_limit == (self.percent.most < LIMIT) == (self.percent.least < LIMIT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One chain, compared with one way without the context."""

    chain: str
    baseline: str
    run_ms: Cost  # of a run under load: the inverse of the rate
    idle_ms: Cost
    cpu_ms: Cost
    cpu_on: Mapping[str, float]
    cpu_off: Mapping[str, float]
    connections: float | None  # per run with the context; None if it opens none
    one_each: bool


def rows(measured: Sequence[Measured]) -> list[Row]:
    """Return one row per measured chain and baseline."""
    seen = {one.contender for one in measured}
    return [
        _row(chain, baseline, measured)
        for chain, baselines in BASELINES.items()
        for baseline in baselines
        if {Contender(chain, "on"), Contender(chain, baseline)} <= seen
    ]


def middle(values: Sequence[float]) -> Spread:
    """Return the median and its interval (of few values: the smallest and the largest).

    By the sign test: for every distribution, a value is as often above the true median as below it.
    """
    ordered, outside = sorted(values), 0
    while 2 * _tail(len(ordered), outside + 2) <= DOUBT:
        outside += 1
    return Spread(
        median=statistics.median(ordered), least=ordered[outside], most=ordered[-1 - outside]
    )


def _tail(throws: int, fewer_than: int) -> float:
    """Return the probability that a coin shows heads less often than that."""
    return float(sum(math.comb(throws, heads) for heads in range(fewer_than)) / 2**throws)


def _row(chain: str, baseline: str, measured: Sequence[Measured]) -> Row:
    on, off = (_of(chain, mode, measured) for mode in ("on", baseline))
    with_connections = [one for one in on if one.contender.visits]
    runs = sum(one.runs for one in with_connections)
    connections = sum(one.visits.connections for one in with_connections)
    return Row(
        chain=chain,
        baseline=baseline,
        run_ms=_cost(on, off, lambda one: 1000 / one.sample.rate),
        idle_ms=_cost(on, off, lambda one: one.latency_ms),
        cpu_ms=_cost(on, off, lambda one: one.cpu_ms),
        cpu_on=_by_process(on),
        cpu_off=_by_process(off),
        connections=connections / runs if runs else None,
        one_each=all(one.visits.are_one_each(one.runs) for one in with_connections),
    )


def _of(chain: str, mode: str, measured: Sequence[Measured]) -> list[Measured]:
    mine = [one for one in measured if one.contender == Contender(chain, mode)]
    return sorted(mine, key=lambda one: one.sample.round)


def _cost(
    on: Sequence[Measured], off: Sequence[Measured], figure: Callable[[Measured], float]
) -> Cost:
    with_context, without = [figure(one) for one in on], [figure(one) for one in off]
    added = [(mine / theirs - 1) * 100 for mine, theirs in zip(with_context, without, strict=True)]
    return Cost(on=spread(with_context), off=spread(without), percent=middle(added))


def _by_process(measured: Sequence[Measured]) -> dict[str, float]:
    kinds = sorted({kind for one in measured for kind in one.sample.cpu_ms})
    return {
        kind: statistics.median(one.sample.cpu_ms.get(kind, 0.0) for one in measured)
        for kind in kinds
    }
