"""Nodes that store values in the run cache."""

from typing import Annotated, Any

from isolane.context import NodeContext
from isolane.node import node
from isolane.shapes import Limits, Uses

Name = Annotated[str, Uses("cache")]
Key = Annotated[str, Limits(min_length=1, max_length=256)]  # at most 1024 bytes


@node("cache.get", idempotent=True)
def cache_get(ctx: NodeContext, *, resource: Name, key: Key, default: Any = None) -> dict[str, Any]:
    """Return the value of a key, or the default if there is none."""
    value = ctx.resource(resource).get(key)
    return {"found": value is not None, "value": default if value is None else value}


@node("cache.set", idempotent=True)
def cache_set(
    ctx: NodeContext,
    *,
    resource: Name,
    key: Key,
    value: Any,
    ttl_s: Annotated[float, Limits(above=0, maximum=366 * 86_400.0)] | None = None,
) -> dict[str, Any]:
    """Keep a value under a key, as long as ttl_s or the definition says, and no longer than the run is placed."""
    ctx.resource(resource).set(key, value, ttl_s=ttl_s)
    return {"key": key}


@node("cache.delete", idempotent=True)
def cache_delete(ctx: NodeContext, *, resource: Name, key: Key) -> dict[str, Any]:
    """Delete a key; says whether it was there."""
    return {"deleted": bool(ctx.resource(resource).delete(key))}
