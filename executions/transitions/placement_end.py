"""The end of a placement, as the events of its run name it."""

from dataclasses import dataclass
from typing import Any

from executions.semantics.reasons import EndReason
from executions.transitions.fence import FENCE_PARAMETERS
from isolane.limits import Usage
from resources.placement import Placement

# The data of `placement.began`, for a placement that its end announces because no claim has; and of how it ended.
BEGAN_DATA = "jsonb_strip_nulls(jsonb_build_object('epoch', %(epoch)s::int, 'worker', nullif(%(worker)s::text, '')))"
ENDED_DATA = """jsonb_strip_nulls(jsonb_build_object(
               'epoch', %(epoch)s::int, 'reason', %(reason)s::text, 'worker', nullif(%(worker)s::text, ''),
               'by', nullif(%(by)s::text, '')))"""
END_PARAMETERS = (*FENCE_PARAMETERS, "reason", "lost", "by", "worker")
# What the runtime of a placement has used, for the run `e`.
USED = """cpu_seconds = e.cpu_seconds + %(cpu_seconds)s::float8,
        peak_ram_mb = greatest(e.peak_ram_mb, %(peak_ram_mb)s::float8)"""
USAGE_PARAMETERS = ("cpu_seconds", "peak_ram_mb")
# Of a placement without a runtime, or whose runtime another worker had.
NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementEnd:
    """The reason why a placement ends, and the worker that ends it."""

    reason: EndReason
    lost: bool = False  # its worker is gone, or could not go on with it
    by: str = ""  # the node name of the worker that ends it, if that is not its own

    def parameters(self, placement: Placement) -> dict[str, Any]:
        """Return what the statements write."""
        described = {
            "reason": self.reason.value,
            "lost": self.lost,
            "by": self.by,
            "worker": placement.worker,
        }
        return {**placement.parameters(), **described}


def usage_parameters(usage: Usage) -> dict[str, float]:
    """Return what the statements write of a runtime's usage."""
    return {"cpu_seconds": usage.cpu_seconds, "peak_ram_mb": usage.peak_ram_mb}


OVER = PlacementEnd(reason=EndReason.RUN_ENDED)
