"""Tables of one tenant: what it may run, what ran, what it had and cost, what people were asked."""

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
