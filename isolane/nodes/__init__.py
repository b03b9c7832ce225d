"""The built-in nodes."""

from isolane.nodes import cache, data, flow, http, human, llm, resources, sql

__all__ = ["cache", "data", "flow", "http", "human", "llm", "resources", "sql"]
