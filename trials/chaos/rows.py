"""What the platform and the judge have written of the runs. Plain data."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from executions.blueprints.plan import Plan

Link = tuple[str, int, str]  # execution, epoch and path of one link of a chain


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run as the platform has it."""

    id: UUID
    tenant: str
    blueprint: str
    state: str
    code: str = ""
    last_event: int = 0


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """One step as the platform has it."""

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
    """One thing that the platform says has happened."""

    execution: UUID
    sequence: int
    kind: str
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a step told the judge: that it began, or that it was done."""

    execution: UUID
    step: str
    epoch: int
    attempt: int
    at: datetime
    role: str = "step"  # or recover
    pid: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Its place among the attempts of its step."""
        return self.epoch, self.attempt


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What an exactly_once step has left."""

    execution: UUID
    step: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A unique key that a step found taken."""

    execution: UUID
    step: str
    epoch: int
    attempt: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Heard:
    """All that the judge has heard."""

    starts: Sequence[Told] = ()
    dones: Sequence[Told] = ()
    effects: Sequence[Effect] = ()
    violations: Sequence[Violation] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that a verdict is made from."""

    plans: Mapping[str, Plan]  # by the names of their blueprints
    submitted: Set[UUID]
    cancelled: Set[UUID]  # of which it was asked
    runs: Sequence[RunRow]
    steps: Sequence[StepRow]
    events: Sequence[EventRow]
    heard: Heard
    successes: Mapping[Link, int] = field(default_factory=dict)  # by link, how many tasks
    killed: Set[int] = frozenset()  # the ids of children that the weather has killed
