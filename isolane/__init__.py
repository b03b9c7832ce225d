"""What step authors import; needs nothing but the standard library."""

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import StepError, StepResult
from isolane.shapes import Limits

__all__ = ["Limits", "NodeContext", "StepError", "StepResult", "node"]
