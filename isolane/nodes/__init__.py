"""The built-in nodes."""

from isolane.nodes import data, flow

__all__ = ["data", "flow"]
