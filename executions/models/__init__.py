"""Tables of one tenant: blueprints, runs, steps, events, logs, resources, costs, questions."""

from executions.models.approval import Approval, ApprovalState
from executions.models.blueprint import Blueprint, BlueprintVersion
from executions.models.cost import CostRecord, MonthlyCost
from executions.models.event import ExecutionEvent
from executions.models.execution import Execution
from executions.models.log import StepLog
from executions.models.resource import ResourceRecord
from executions.models.step import Step

__all__ = [
    "Approval",
    "ApprovalState",
    "Blueprint",
    "BlueprintVersion",
    "CostRecord",
    "Execution",
    "ExecutionEvent",
    "MonthlyCost",
    "ResourceRecord",
    "Step",
    "StepLog",
]
