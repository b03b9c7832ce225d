"""The plan of a flood trial: the same seed gives the same runs. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

TENANTS = ("acme", "globex")
STEP = "flood.step"
STEPS = 2
LIMITS = {"ram_mb": 128, "processes": 16, "disk_mb": 16}
# How often of a hundred, and the end that is promised: state and code of the run.
ACTS: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "work": (84, "succeeded"),
        "leave_a_process": (5, "succeeded"),
        "raise": (4, "failed UNKNOWN_ERROR"),
        "leave": (4, "failed UNKNOWN_ERROR"),
        "fill_the_disk": (2, "failed DISK_FULL"),
        "stop": (1, "timed_out TIMEOUT"),
    }
)


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run to submit, and the end that is promised."""

    tenant: str
    act: str

    @property
    def end(self) -> str:
        return ACTS[self.act][1]


def blueprint(act: str) -> dict[str, Any]:
    """Return a blueprint whose last step acts like this."""
    acts = ["work"] * (STEPS - 1) + [act]
    steps = [
        {"key": f"s{number}", "uses": STEP, "with": {"act": each}, "timeout": "2s"}
        for number, each in enumerate(acts, start=1)
    ]
    return {
        "name": name_of(act),
        "isolation": "process",
        "timeout": "5m",
        "limits": LIMITS,
        "steps": steps,
    }


def name_of(act: str) -> str:
    """Return the name of a blueprint."""
    return f"flood-{act.replace('_', '-')}"


def runs(seed: int, number: int) -> list[PlannedRun]:
    """Return the runs in order; the tenants take turns."""
    chance = random.Random(seed)  # noqa: S311 - must repeat
    weights = [weight for weight, _ in ACTS.values()]
    acts = chance.choices(list(ACTS), weights, k=number)
    return [
        PlannedRun(tenant=TENANTS[index % len(TENANTS)], act=act) for index, act in enumerate(acts)
    ]
