"""A run and its steps in memory, as `isolane run --local` shows them. Pure."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from executions.semantics.resource_tracker import TrackedResource
from executions.states import ExecutionState, StepState


@dataclass(kw_only=True, slots=True)
class LocalStep:
    """The current state of one step; sensitive values are masked."""

    path: str
    position: int
    uses: str
    state: StepState = StepState.PENDING
    attempt: int = 0
    inputs: Any = None
    output: Any = None
    code: str = ""
    message: str = ""
    cause: str = ""
    seconds: float = 0.0  # spent in its attempts


@dataclass(kw_only=True, slots=True)
class LocalRun:
    """The current state of the run; sensitive values are masked."""

    seed: int
    state: ExecutionState = ExecutionState.RUNNING
    code: str = ""
    message: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    costs: dict[str, Decimal] = field(default_factory=dict)
    steps: list[LocalStep] = field(default_factory=list)
    resources: list[TrackedResource] = field(
        default_factory=list
    )  # every handle that was opened, in order
