"""A run that is loaded for work. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from executions.blueprints.plan import Plan
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory
from isolane.limits import RunLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveRun:
    """Everything needed to continue a run."""

    plan: Plan
    memory: ExecutionMemory
    budget: Budget
    seed: int
    isolation: str
    seal: Callable[[Any], bytes]  # encrypts values before they are stored
    limits: RunLimits = field(
        default_factory=RunLimits
    )  # the tenant's and the blueprint's, the stricter
    requested_by: str = ""
    request_id: str = ""
    # For a replay: the outputs of the original run's steps.
    original: dict[str, Any] | None = None
