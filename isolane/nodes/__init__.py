"""The built-in nodes."""

from isolane.nodes import data

__all__ = ["data"]
