"""The node that checks a resource."""

import time
from typing import Annotated, Any

from isolane.context import NodeContext
from isolane.node import node
from isolane.shapes import Limits, Uses

_SLICE = 0.05  # seconds between two checks for a cancellation


@node("resources.check", idempotent=True)
def resources_check(
    ctx: NodeContext,
    *,
    resource: Annotated[str, Uses()],
    hold_s: Annotated[float, Limits(minimum=0, maximum=30)] = 0.0,
) -> dict[str, Any]:
    """Open a resource, ask its far side for a sign of life, and hold it for a while."""
    answer = ctx.check_resource(resource)
    handle_id = ctx.resource_id(resource)
    until = time.monotonic() + hold_s
    while (left := until - time.monotonic()) > 0 and not ctx.cancelled:
        time.sleep(min(left, _SLICE))
    return {"resource_id": handle_id, "type": handle_id.rpartition("_")[0], "said": answer}
