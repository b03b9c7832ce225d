"""A blueprint's steps in order, as its document declares them. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from executions.blueprint.errors import InvalidBlueprint, shown

DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DEFAULT_STEP_TIMEOUT = "30s"
MIN_STEP_SECONDS, MAX_STEP_SECONDS = 0.01, 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStep:
    """One step as the blueprint declares it."""

    position: int
    path: str
    uses: str
    parameters: Mapping[str, Any]
    timeout_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The steps of one blueprint version, in order."""

    name: str
    steps: tuple[PlannedStep, ...]

    def step(self, path: str) -> PlannedStep:
        """The step at a path."""
        return next(step for step in self.steps if step.path == path)

    def after(self, path: str) -> str:
        """The path of the step that follows, or nothing at the end."""
        position = self.step(path).position + 1
        return self.steps[position].path if position < len(self.steps) else ""

    def from_path(self, path: str) -> tuple[PlannedStep, ...]:
        """This step and all that follow."""
        return self.steps[self.step(path).position :]


def plan(document: Mapping[str, Any]) -> Plan:
    """The steps that a document asks for."""
    steps = tuple(
        PlannedStep(
            position=position,
            path=step["key"],
            uses=step["uses"],
            parameters=step.get("with", {}),
            timeout_s=_seconds(
                step.get("timeout", DEFAULT_STEP_TIMEOUT), f"$.steps[{position}].timeout"
            ),
        )
        for position, step in enumerate(document["steps"])
    )
    return Plan(name=document["name"], steps=steps)


def _seconds(text: str, where: str) -> float:
    match = DURATION.fullmatch(text)
    seconds = float(match[1]) * UNIT_SECONDS[match[2]] if match else 0.0
    if not MIN_STEP_SECONDS <= seconds <= MAX_STEP_SECONDS:
        raise InvalidBlueprint(
            f"{where} is {shown(repr(text))}; write a duration such as 500ms, 30s, 5m or 1h,"
            " between 10 ms and 24 h.",
            field=where,
        )
    return seconds
