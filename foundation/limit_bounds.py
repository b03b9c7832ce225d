"""The range of each limit of a run: the same in the environment, in quotas and in blueprints. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Number = int | float


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range; a number without a fraction, unless said otherwise."""

    least: Number
    most: Number
    whole: bool = True

    def allow(self, value: object) -> bool:
        """Say whether a value is a number in this range."""
        # A bool is an int to Python; NaN fails the comparison.
        if isinstance(value, bool) or not isinstance(value, int if self.whole else Number):
            return False
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from {self.least} to {self.most}"


# By the names of isolane.limits.RunLimits. Below the least a Python runner cannot even start.
LIMIT_BOUNDS: Mapping[str, Bounds] = MappingProxyType(
    {
        "cpu": Bounds(0.1, 1024, whole=False),
        "ram_mb": Bounds(64, 1_048_576),
        "processes": Bounds(8, 32_768),
        "disk_mb": Bounds(1, 1_048_576),
        "open_files": Bounds(32, 1_048_576),
        "output_kb": Bounds(1, 10_240),
        "connections": Bounds(1, 4096),
        "network_mb": Bounds(1, 1_048_576),
        "idle_seconds": Bounds(1, 86_400),
    }
)


def number(text: str) -> Number | None:
    """Read a number as people write it, such as 256 or 0.5; None if it is none."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:  # also for more digits than Python reads
        return None
