"""Tables of one tenant: what it may run, what ran, and what happened."""

from executions.models.blueprint import Blueprint, BlueprintVersion
from executions.models.event import ExecutionEvent
from executions.models.execution import Execution
from executions.models.step import Step

__all__ = ["Blueprint", "BlueprintVersion", "Execution", "ExecutionEvent", "Step"]
