"""The names that authors of steps import; needs nothing but the standard library."""

from isolane.context import NodeContext
from isolane.node import node
from isolane.protocol import Grant
from isolane.results import StepError, StepResult
from isolane.shapes import Limits, Uses

__all__ = ["Grant", "Limits", "NodeContext", "StepError", "StepResult", "Uses", "node"]
