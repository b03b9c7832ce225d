"""What was measured in one siege. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures import percentile
from trials.siege.tally import Tally
from trials.siege.victim import Seen
from trials.siege.watch import Watched


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """Milliseconds of the victim's GETs, with those that failed."""

    requests: int
    p50: float
    p95: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One part of a siege as the victim and the watch have seen it."""

    seconds: float
    seen: Seen
    web: Watched

    @property
    def latencies(self) -> Latencies:
        return latencies(self.seen.latencies_ms)

    @property
    def log_bytes(self) -> int:
        """By which all logs of the platform have grown."""
        return sum(self.web.log_bytes.values())


@dataclass(frozen=True, kw_only=True)
class Siege:
    """Everything."""

    idle: Phase
    attack: Phase
    control: Phase | None  # None if the platform did not come back
    recovery_s: float | None  # from the attack's end to quick answers
    attacks: Mapping[str, Tally]
    attack_shares: Mapping[str, float]  # of one core, by attacking process
    control_shares: Mapping[str, float]


def latencies(values_ms: Sequence[float]) -> Latencies:
    """Of a phase in which nothing was asked, nothing is known."""
    if not values_ms:
        return Latencies(requests=0, p50=0.0, p95=0.0, most=0.0)
    return Latencies(
        requests=len(values_ms),
        p50=percentile(values_ms, 50),
        p95=percentile(values_ms, 95),
        most=max(values_ms),
    )


def times(of: float, to: float) -> float:
    """A ratio; of nothing it is endless."""
    return of / to if to else float("inf")


def server_errors(failures: Counter[str]) -> int:
    """Answers with a status of 500 or more."""
    return sum(number for got, number in failures.items() if got.isdecimal() and int(got) >= 500)
