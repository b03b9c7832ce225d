"""The limits of a run, and what it used of them. Pure."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """The most that one run may use; None is no limit. Levels differ in what they bound."""

    cpu: float | None = None  # cores; without cgroups CPU seconds of each process
    ram_mb: int | None = None
    processes: int | None = None  # threads count, too
    disk_mb: int | None = None  # files that it writes
    open_files: int | None = None  # of each process
    output_kb: int | None = None  # log lines of one attempt of a step
    connections: int | None = None  # open through the gate
    network_mb: int | None = None  # sent and received through the gate, together
    idle_seconds: int | None = None  # of a connection through the gate, without a byte
    seconds: float | None = None  # for which the run may still go on

    def stricter(self, other: "RunLimits") -> "RunLimits":
        """Return the smaller of both for each limit."""
        return RunLimits(
            **{
                field.name: _smaller(getattr(self, field.name), getattr(other, field.name))
                for field in fields(self)
            }
        )


def _smaller(one: Any, other: Any) -> Any:
    return min((value for value in (one, other) if value is not None), default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """All that a runtime has used from its start to its end."""

    cpu_seconds: float = 0.0  # of all of its processes
    peak_ram_mb: float = 0.0
