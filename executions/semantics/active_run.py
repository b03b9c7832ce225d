"""What is kept of a run while it is at work. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executions.blueprints.plan import Plan
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveRun:
    """What it takes to go on with a run."""

    plan: Plan
    memory: ExecutionMemory
    budget: Budget
    seed: int
    isolation: str
    seal: Callable[[Any], bytes]  # encrypts what is stored of it
    requested_by: str = ""
    request_id: str = ""
    # Of a replay: what the steps of the original came to.
    original: dict[str, Any] | None = None
