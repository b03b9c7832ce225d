"""Nodes that only rearrange data."""

from typing import Any

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import Code, StepError


@node("data.map", idempotent=True, deterministic=True)
def data_map(ctx: NodeContext, *, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with all references in them resolved."""
    return values


@node("data.set", idempotent=True, deterministic=True)
def data_set(ctx: NodeContext, *, values: dict[str, Any]) -> dict[str, Any]:
    """Set variables of the run, and return them."""
    try:
        ctx.memory.update(values)
    except ValueError as error:
        raise StepError(Code.POLICY_VIOLATION, f"values: {error}") from None
    return values
