"""Figures of one siege. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures import percentile
from trials.siege.tally import Tally
from trials.siege.victim import VictimFigures
from trials.siege.web_usage import WebUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """Latencies of the victim's GETs in milliseconds, failed ones included."""

    requests: int
    p50: float
    p95: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a siege: the victim's figures and the resource usage of web."""

    seconds: float
    victim: VictimFigures
    web: WebUsage

    @property
    def latencies(self) -> Latencies:
        return latencies(self.victim.latencies_ms)

    @property
    def log_bytes(self) -> int:
        """Return by how much all logs of the platform have grown."""
        return sum(self.web.log_bytes.values())


@dataclass(frozen=True, kw_only=True)
class SiegeResult:
    """Everything that was measured."""

    idle: Phase
    attack: Phase
    control: Phase | None  # None if the platform did not recover
    recovery_s: float | None  # from the end of the attack to fast answers
    attacks: Mapping[str, Tally]
    attack_shares: Mapping[str, float]  # of one core, by attacking process
    control_shares: Mapping[str, float]


def latencies(values_ms: Sequence[float]) -> Latencies:
    """Summarise latencies; all are 0 if there were no requests."""
    if not values_ms:
        return Latencies(requests=0, p50=0.0, p95=0.0, most=0.0)
    return Latencies(
        requests=len(values_ms),
        p50=percentile(values_ms, 50),
        p95=percentile(values_ms, 95),
        most=max(values_ms),
    )


def times(of: float, to: float) -> float:
    """Return a ratio; infinity if it is relative to 0."""
    return of / to if to else float("inf")


def server_errors(failures: Counter[str]) -> int:
    """Count answers with a status of 500 or more."""
    return sum(number for got, number in failures.items() if got.isdecimal() and int(got) >= 500)
