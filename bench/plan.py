"""Order and size of the measurements. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST_RUNS = 30
MOST_RUNS = 3000


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Size of the benchmark."""

    rounds: int
    steps: Sequence[int]
    warm_up_runs: int
    seconds: float  # of one drain
    latencies: int


FULL = Size(rounds=5, steps=(1, 3, 10), warm_up_runs=60, seconds=3.0, latencies=30)
QUICK = Size(rounds=1, steps=(1, 3), warm_up_runs=10, seconds=0.3, latencies=5)


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Rotate the names, so that no contender always follows the same other one."""
    start = turn % len(names) if names else 0
    return [*names[start:], *names[:start]]


def turns(names: Sequence[str], size: Size) -> Iterator[tuple[int, int, str]]:
    """Yield round, number of steps and contender, interleaved."""
    for number in range(size.rounds):
        for place, steps in enumerate(size.steps):
            for name in rotated(names, number + place):
                yield number, steps, name


def runs_for(rate: float, seconds: float) -> int:
    """Return how many runs take about that long."""
    return min(max(round(rate * seconds), LEAST_RUNS), MOST_RUNS)
