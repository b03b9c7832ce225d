"""The built-in nodes."""

from isolane.nodes import data, flow, human

__all__ = ["data", "flow", "human"]
