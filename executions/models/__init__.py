"""Tables of one tenant: what it may run, what ran, what people were asked, what happened and what it cost."""

from executions.models.approval import Approval, ApprovalState
from executions.models.blueprint import Blueprint, BlueprintVersion
from executions.models.cost import CostRecord, MonthlyCost
from executions.models.event import ExecutionEvent
from executions.models.execution import Execution
from executions.models.log import StepLog
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
    "Step",
    "StepLog",
]
