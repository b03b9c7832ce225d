"""The choice of a run's isolation level. Pure: sync, no state, no I/O."""

from collections.abc import Collection
from dataclasses import dataclass

from foundation.errors import Conflict
from tenants.isolation import Isolation


class IsolationUnavailable(Conflict):
    """No live worker offers the isolation that this run needs; it is refused rather than run weaker."""

    code = "isolation_unavailable"


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationDecision:
    """The chosen level and the reason, stored with the run."""

    level: Isolation
    reason: str


def choose(
    *,
    required: Isolation,
    trusted: bool,
    available: Collection[Isolation],
    requested: Isolation | None = None,
) -> IsolationDecision:
    """Choose the weakest available level that satisfies the tenant's requirement, its trust and the blueprint."""
    floor, reason = required, f"the tenant requires {required}"
    if requested is not None and requested.strictness > floor.strictness:
        floor, reason = requested, f"the blueprint asks for {requested}"
    if not trusted and floor is Isolation.SHARED:
        floor, reason = (
            Isolation.PROCESS,
            "the tenant is not trusted, and shared is for trusted tenants",
        )
    fitting = sorted(
        (level for level in available if level.strictness >= floor.strictness),
        key=lambda x: x.strictness,
    )
    if not fitting:
        offered = ", ".join(sorted(available)) or "nothing"
        way_out = "Enable that level on a worker"
        if not trusted and required is Isolation.SHARED:
            way_out += ", or mark the tenant as trusted ('isolane tenants set NAME --trusted')"
        raise IsolationUnavailable(
            f"This run needs isolation {floor} or stricter ({reason}), and the workers offer {offered}. {way_out}."
        )
    return IsolationDecision(level=fitting[0], reason=reason)
