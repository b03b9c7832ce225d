"""The contenders: two levels with so many tenants each, and two kinds of forks without a platform. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.plan import Size, turns

LEVELS = ("process", "shared")
SANDBOXES, FORKS = "sandboxes", "forks"
BARE = (SANDBOXES, FORKS)
TITLES = {
    "process": "process",
    "shared": "shared",
    SANDBOXES: "bare sandboxed forks",
    FORKS: "bare fork + exit",
}
STEPS = (1, 3)
BARE_STEPS = 1
HOLD = 0  # in place of a number of steps: one step that takes its time, while RAM is measured
HOLD_SECONDS = 1.0


class Runs(NamedTuple):
    """Runs of one level and of so many tenants."""

    level: str
    tenants: int

    @property
    def name(self) -> str:
        return f"{self.level}-{self.tenants}"

    @classmethod
    def named(cls, name: str) -> "Runs":
        """Return the runs of this name."""
        level, _, tenants = name.partition("-")
        return cls(level, int(tenants))


def names(tenants: Sequence[int]) -> list[str]:
    """Return the names of all contenders."""
    return [*(Runs(level, number).name for level in LEVELS for number in tenants), *BARE]


def tenants_of(name: str) -> int:
    """Return the number of tenants of a contender; 1 without a platform."""
    return 1 if name in BARE else Runs.named(name).tenants


def kind_of(name: str) -> str:
    """Return a contender's name without the number of tenants."""
    return name if name in BARE else Runs.named(name).level


def planned(contenders: Sequence[str], size: Size) -> Iterator[tuple[int, int, str]]:
    """Yield round, number of steps and contender; without a platform there is one step."""
    for number, steps, name in turns(contenders, size):
        if name not in BARE or steps == BARE_STEPS:
            yield number, steps, name


def document(level: str, steps: int) -> dict[str, Any]:
    """Return the blueprint of so many steps, or of one that is held."""
    given = {"hold_s": HOLD_SECONDS} if steps == HOLD else {}
    links = [
        {"key": f"s{number}", "uses": "bench.clock", "with": given}
        for number in range(max(steps, 1))
    ]
    return {"name": f"{level}-{steps}", "isolation": level, "steps": links}
