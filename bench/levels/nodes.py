"""The node of the measured runs."""

import time

from isolane import NodeContext, node


@node("bench.clock")
def clock(ctx: NodeContext, *, hold_s: float = 0.0) -> float:
    """Return the time (monotonic) at which it began; the clock of a sandbox is the machine's."""
    began = time.monotonic()
    if hold_s:
        time.sleep(hold_s)
    return began
