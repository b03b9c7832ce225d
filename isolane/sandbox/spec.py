"""The request of a worker to its zygote for one run. Pure."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from isolane.limits import RunLimits


class Wall(StrEnum):
    """A part of a sandbox that stands for itself. All of them stand always; tests remove one to see it missed."""

    MOUNT = "mount"
    NET = "net"
    CAPABILITIES = "capabilities"
    LIMITS = "limits"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxSpec:
    """One sandbox."""

    limits: RunLimits
    until: float = math.inf  # may live until then (monotonic), unless a keepalive follows
    outside: int | None = None  # the user and group outside, if the zygote may choose; else its own
    # Names of the limits that a cgroup keeps for all processes together.
    counted: frozenset[str] = frozenset()
    walls: frozenset[Wall] = frozenset(Wall)
    has_routes: bool = False  # of its gate, so that its forwarder is needed from the start

    @property
    def looks_at_ram(self) -> bool:
        """Say whether the guard itself must look at the RAM of all processes."""
        return (
            self.limits.ram_mb is not None
            and "ram_mb" not in self.counted
            and Wall.LIMITS in self.walls
        )

    def encode(self) -> dict[str, Any]:
        """Return it as JSON."""
        return _fields(self) | {
            "limits": _fields(self.limits),
            "walls": sorted(self.walls),
            "counted": sorted(self.counted),
        }

    @classmethod
    def decode(cls, fields: dict[str, Any]) -> "SandboxSpec":
        """Return it from JSON."""
        limits, walls = RunLimits(**fields["limits"]), frozenset(map(Wall, fields["walls"]))
        counted = frozenset(fields["counted"])
        return cls(**fields | {"limits": limits, "walls": walls, "counted": counted})


def _fields(of: RunLimits | SandboxSpec) -> dict[str, Any]:
    """Return the fields as they are: `asdict` would copy each, for every run."""
    return {name: getattr(of, name) for name in of.__slots__}
