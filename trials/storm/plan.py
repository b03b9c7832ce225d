"""The plan of a storm trial: the same seed gives the same blueprints and runs. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TENANTS = ("acme", "globex")
UNTRUSTED = ("initech", "umbrella")  # their runs have the level `process`
BLUEPRINTS = 24
STEP = "storm.step"
# Type and definition, by name in a blueprint.
RESOURCES = {
    "shop": ("database", "shop"),
    "own": ("database", "own"),
    "scratch": ("cache", "scratch"),
    "web": ("http_api", "web"),
}
CANCELLED = 0.1  # of the runs, from outside
CANCEL_WITHIN = 3.0  # seconds after they were submitted


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run to submit, and when to cancel it if at all."""

    tenant: str
    blueprint: str
    seed: int
    cancel_after: float | None


def documents(seed: int, number: int = BLUEPRINTS) -> list[dict[str, Any]]:
    """Return blueprints of one to four steps, with some of the resources, in both scopes."""
    chance = random.Random(seed)  # noqa: S311 - must repeat
    return [_document(f"storm-{index}", chance) for index in range(number)]


def runs(
    seed: int, number: int, blueprints: Sequence[str], tenants: Sequence[str] = TENANTS
) -> list[PlannedRun]:
    """Return the runs in order; the tenants take turns."""
    chance = random.Random(f"runs {seed}")  # noqa: S311 - must repeat
    return [
        PlannedRun(
            tenant=tenants[index % len(tenants)],
            blueprint=chance.choice(blueprints),
            seed=chance.getrandbits(62),
            cancel_after=chance.uniform(0, CANCEL_WITHIN) if chance.random() < CANCELLED else None,
        )
        for index in range(number)
    ]


def _document(name: str, chance: random.Random) -> dict[str, Any]:
    declared = chance.sample(list(RESOURCES), chance.randint(1, len(RESOURCES)))
    steps = [
        {
            "key": f"s{number}",
            "uses": STEP,
            "with": {"resources": chance.sample(declared, chance.randint(1, len(declared)))},
            "timeout": "1s",
            **_failure_mode(chance),
        }
        for number in range(1, chance.randint(1, 4) + 1)
    ]
    resources = {name: _declared(name, chance) for name in declared}
    return {
        "name": name,
        "timeout": "2m",
        "express": chance.random() < 0.3,
        "resources": resources,
        "steps": steps,
    }


def _declared(name: str, chance: random.Random) -> dict[str, Any]:
    type_, definition = RESOURCES[name]
    scope = chance.choice(["execution", "execution", "step"])
    eager = {"eager": True} if scope == "execution" and chance.random() < 0.3 else {}
    return {"type": type_, "definition": definition, "scope": scope, **eager}


def _failure_mode(chance: random.Random) -> dict[str, Any]:
    """Choose a mode; a run that continues after its runtime died is placed anew, with new resources."""
    return chance.choice(
        [
            {},
            {"on_failure": "continue"},
            {"on_failure": "continue"},
            {"on_failure": "retry", "retry": {"attempts": 2, "then": "continue"}},
        ]
    )
