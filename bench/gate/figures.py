"""Figures of direct connections and of those through the gate, and the tables that are printed. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.figures import percentile

DIRECT, GATE = "direct", "gate"
PARTS = ("runner", "forwarder", "gate", "server")


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One transfer in one direction."""

    direction: str
    way: str
    round: int
    mb_s: float
    cpu: Mapping[str, float]  # seconds per GB, by process

    @property
    def total(self) -> float:
        """Return the CPU seconds per GB of all processes."""
        return sum(self.cpu.values())


@dataclass(frozen=True, kw_only=True)
class Times:
    """Milliseconds of one kind of thing, of all rounds."""

    name: str
    ms: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class RouteCost:
    """Cost of runs without a resource, with an unused and with a used route, in one round."""

    name: str
    round: int
    rate: float  # runs per second, one after the other
    start_ms: float  # from asking for the runtime to the step, or to its first byte
    ram_mb: float  # private memory of all processes of a run
    forwarder_mb: float


def of_round(
    found: Sequence[Transfer], direction: str, value: Callable[[Transfer], float]
) -> float:
    """Return the median of gate to direct within each round."""
    values = {(one.way, one.round): value(one) for one in found if one.direction == direction}
    rounds = {number for _, number in values}
    return statistics.median(values[GATE, n] / values[DIRECT, n] for n in rounds)


def transfer_table(found: Sequence[Transfer]) -> Table:
    """Return rates and CPU by process; medians of the rounds."""
    made = Table(title="plain socket; CPU seconds per GB")
    for heading in ("direction", "way", "MB/s", "x direct", *PARTS, "total", "x direct"):
        made.add_column(heading, justify="right", no_wrap=True)
    for direction, way in dict.fromkeys((one.direction, one.way) for one in found):
        mine = [one for one in found if (one.direction, one.way) == (direction, way)]
        rate = of_round(found, direction, lambda one: one.mb_s)
        cpu = of_round(found, direction, lambda one: one.total)
        parts = [statistics.median(one.cpu.get(part, 0.0) for one in mine) for part in PARTS]
        made.add_row(
            direction, way,
            f"{statistics.median(one.mb_s for one in mine):.0f}",
            f"{rate:.2f}" if way == GATE else "",
            *(f"{part:.2f}" if part else "" for part in parts),
            f"{statistics.median(one.total for one in mine):.2f}",
            f"{cpu:.1f}" if way == GATE else "",
        )  # fmt: skip
    return made


def times_table(found: Sequence[Times]) -> Table:
    """Return median, 95th percentile and maximum."""
    made = Table(title="milliseconds")
    made.add_column("of")
    for heading in ("p50", "p95", "most", "tries"):
        made.add_column(heading, justify="right")
    for one in found:
        p50, p95 = percentile(one.ms, 50), percentile(one.ms, 95)
        made.add_row(one.name, f"{p50:.3f}", f"{p95:.3f}", f"{max(one.ms):.3f}", str(len(one.ms)))
    return made


def route_table(found: Sequence[RouteCost]) -> Table:
    """Return what a route costs; ratios to runs without a resource, taken within a round."""
    made = Table(title="runs one after the other, at `process`")
    made.add_column("run")
    for heading in ("runs/s", "x no resource", "start ms", "MB/run", "forwarder MB"):
        made.add_column(heading, justify="right")
    names = list(dict.fromkeys(one.name for one in found))
    base = {one.round: one.rate for one in found if one.name == names[0]}
    for name in names:
        mine = [one for one in found if one.name == name]
        made.add_row(
            name,
            f"{statistics.median(one.rate for one in mine):.1f}",
            f"{statistics.median(one.rate / base[one.round] for one in mine):.2f}",
            f"{statistics.median(one.start_ms for one in mine):.1f}",
            f"{statistics.median(one.ram_mb for one in mine):.1f}",
            f"{statistics.median(one.forwarder_mb for one in mine):.1f}",
        )
    return made
