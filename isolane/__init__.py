"""What step authors import; needs nothing but the standard library."""

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import StepError, StepResult

__all__ = ["NodeContext", "StepError", "StepResult", "node"]
