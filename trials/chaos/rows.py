"""Rows of the platform and of the observer. Plain data."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from executions.blueprints.plan import Plan

Link = tuple[str, int, str]  # execution, epoch and path of one link of a chain


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run as the platform stores it."""

    id: UUID
    tenant: str
    blueprint: str
    state: str
    code: str = ""
    last_event: int = 0


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """One step as the platform stores it."""

    execution: UUID
    path: str
    state: str
    code: str = ""
    message: str = ""
    cause: str = ""
    attempt: int = 0
    epoch: int = 0
    finished_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """One event as the platform stores it."""

    execution: UUID
    sequence: int
    kind: str
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The start or the end of an attempt, as its step recorded it at the observer."""

    execution: UUID
    step: str
    epoch: int
    attempt: int
    at: datetime
    role: str = "step"  # or recover
    pid: int = 0  # in a sandbox its namespace, see `trials.sandboxes.runtime_number`

    @property
    def order(self) -> tuple[int, int]:
        """Return the place among the attempts of the step."""
        return self.epoch, self.attempt


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of an exactly_once step."""

    execution: UUID
    step: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A unique key that a step found in use."""

    execution: UUID
    step: str
    epoch: int
    attempt: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Observations:
    """All rows of the observer."""

    starts: Sequence[Observation] = ()
    dones: Sequence[Observation] = ()
    effects: Sequence[Effect] = ()
    violations: Sequence[Violation] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that the verdict is based on."""

    plans: Mapping[str, Plan]  # by name of blueprint
    submitted: Set[UUID]
    cancelled: Set[UUID]  # for which it was requested
    runs: Sequence[RunRow]
    steps: Sequence[StepRow]
    events: Sequence[EventRow]
    observed: Observations
    successes: Mapping[Link, int] = field(default_factory=dict)  # number of tasks by link
    killed: Set[int] = frozenset()  # numbers of children killed by a fault
