"""The choice of a run's isolation level. Pure: sync, no state, no I/O."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from foundation.errors import Conflict
from tenants.isolation import Isolation


class IsolationUnavailable(Conflict):
    """No live worker offers the isolation that this run needs; it is refused rather than run weaker."""

    code = "isolation_unavailable"


class IsolationReason(StrEnum):
    """The rule that set the weakest level that a run may get; stored with the run."""

    TENANT_REQUIRES = "tenant_requires"
    BLUEPRINT_REQUESTS = "blueprint_requests"
    TENANT_UNTRUSTED = "tenant_untrusted"


_SENTENCES: Mapping[str, str] = {
    IsolationReason.TENANT_REQUIRES: "the tenant requires it",
    IsolationReason.BLUEPRINT_REQUESTS: "the blueprint asks for it",
    IsolationReason.TENANT_UNTRUSTED: "the tenant is not trusted, and shared is for trusted tenants",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationDecision:
    """The level and why."""

    level: Isolation
    reason: IsolationReason


def choose(
    *,
    required: Isolation,
    trusted: bool,
    available: Collection[Isolation],
    requested: Isolation | None = None,
) -> IsolationDecision:
    """Choose the weakest available level that satisfies the tenant's requirement, its trust and the blueprint."""
    floor, reason = required, IsolationReason.TENANT_REQUIRES
    if requested is not None and requested.strictness > floor.strictness:
        floor, reason = requested, IsolationReason.BLUEPRINT_REQUESTS
    if not trusted and floor is Isolation.SHARED:
        floor, reason = Isolation.PROCESS, IsolationReason.TENANT_UNTRUSTED
    fitting = sorted(
        (level for level in available if level.strictness >= floor.strictness),
        key=lambda x: x.strictness,
    )
    if not fitting:
        offered = ", ".join(sorted(available)) or "nothing"
        way_out = (
            "Enable that level on a worker ('isolane levels' on its machine says what is missing)"
        )
        raise IsolationUnavailable(
            f"This run needs isolation {floor} or stricter ({describe_reason(reason)}),"
            f" and the workers offer {offered}."
            f" {way_out}{_weaker(available, requested=requested, trusted=trusted)}."
        )
    return IsolationDecision(level=fitting[0], reason=reason)


def _weaker(available: Collection[Isolation], *, requested: Isolation | None, trusted: bool) -> str:
    """Return the way out of letting the tenant have the strictest level on offer, where that would do."""
    strictest = max(available, key=lambda level: level.strictness, default=None)
    if strictest is None or (requested and requested.strictness > strictest.strictness):
        return ""
    if strictest is not Isolation.SHARED:
        return f", or let the tenant have {strictest} ('isolane tenants set NAME --isolation {strictest}')"
    trust = "" if trusted else " --trusted"
    return (
        ", or let the tenant have shared, if you would run its code yourself"
        f" ('isolane tenants set NAME{trust} --isolation shared')"
    )


def describe_reason(code: str) -> str:
    """Return the sentence for a stored reason; a code that is not known stands for itself."""
    return _SENTENCES.get(code, code)
