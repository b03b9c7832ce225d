"""Nodes that only rearrange data."""

from typing import Any

from isolane.context import NodeContext
from isolane.node import node


@node("data.map", idempotent=True, deterministic=True)
def data_map(ctx: NodeContext, *, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with all references in them resolved."""
    return values
