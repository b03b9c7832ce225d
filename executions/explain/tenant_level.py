"""The sentence about the level that new runs of a tenant get from the workers as they are, for operators.

Timing: request-time; a few queries.
Model: sync.
Guarantee: reads only; what a run gets is decided anew when it is submitted.
Failure: bubble; that no worker offers a level is a warning, since it may be enabled later.
"""

from collections.abc import Collection
from typing import NamedTuple

from executions.placement.registry import current_offer, living
from resources.isolation_choice import (
    IsolationDecision,
    IsolationUnavailable,
    choose,
    describe_reason,
)
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import platform_scope


class LevelNote(NamedTuple):
    """A sentence for an operator who has made or changed a tenant."""

    text: str
    is_warning: bool


def level_note(schema: str) -> LevelNote:
    """Return the level that new runs of the tenant get, or the warning that they get none now."""
    with platform_scope():
        tenant = Tenant.objects.get(schema_name=schema)
        offered = current_offer().isolation_levels if living().exists() else None
    if offered is None:
        needed = _decide(tenant, frozenset(Isolation))
        text = (
            f"No worker runs now. Runs of {schema} need the level {needed.level} or a stricter one"
            f" ({describe_reason(needed.reason)}); 'isolane levels', on the machine of workers, says if it gives that."
        )
        return LevelNote(text, is_warning=True)
    try:
        decision = _decide(tenant, offered)
    except IsolationUnavailable as error:
        detail = error.detail.replace("tenants set NAME", f"tenants set {schema}")
        detail = detail.replace("This run needs", "They need", 1)
        return LevelNote(f"Runs of {schema} are refused now. {detail}", is_warning=True)
    reason = describe_reason(decision.reason)
    text = f"New runs of {schema} have the level {decision.level}: {reason}."
    return LevelNote(text, is_warning=False)


def _decide(tenant: Tenant, available: Collection[Isolation]) -> IsolationDecision:
    required = Isolation(tenant.required_isolation)
    return choose(required=required, trusted=tenant.trusted, available=available)
