"""The isolation levels and limits that a tenant's runs get.

Timing: request-time.
Model: sync.
Guarantee: reads only; what a run gets is decided anew when it is submitted and when its context opens.
Failure: bubble.
"""

from dataclasses import dataclass

from django.conf import settings

from executions.placement.registry import NoWorkerYet, current_offer
from executions.semantics.run_limits import effective_limits
from isolane.limits import RunLimits
from resources.isolation_choice import IsolationUnavailable, choose, describe_reason
from tenants.isolation import Isolation
from tenants.models import Quota, Tenant
from tenants.run_limits import QUOTA_LIMITS
from tenants.scope import TenantRef, platform_scope


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantLevels:
    """The level and limits of a run whose blueprint asks for nothing."""

    offered: tuple[Isolation, ...]  # the weakest first
    level: Isolation | None  # None if no worker offers what the tenant needs
    reason: str  # for the level, or for there being none
    limits: RunLimits
    max_run_minutes: int | None


def levels_of(tenant: TenantRef) -> TenantLevels:
    """Return the levels that workers offer, the one that this tenant's runs get, and their limits."""
    with platform_scope():
        found = Tenant.objects.get(pk=tenant.id)
        quota = Quota.objects.get(tenant=found)
        offered: frozenset[Isolation] = frozenset()
        try:
            offered = current_offer().isolation_levels
            level, reason = _level_and_reason(found, offered)
        except (NoWorkerYet, IsolationUnavailable) as error:
            level, reason = None, error.detail
    return TenantLevels(
        offered=tuple(sorted(offered, key=lambda level: level.strictness)),
        level=level,
        reason=reason,
        limits=effective_limits(
            default=settings.RUN_LIMITS, quota=_limits(quota), blueprint=RunLimits()
        ),
        max_run_minutes=quota.max_run_minutes,
    )


def _level_and_reason(tenant: Tenant, offered: frozenset[Isolation]) -> tuple[Isolation, str]:
    decision = choose(
        required=Isolation(tenant.required_isolation),
        trusted=tenant.trusted,
        available=offered,
    )
    return decision.level, describe_reason(decision.reason)


def _limits(quota: Quota) -> RunLimits:
    names = [name for name in QUOTA_LIMITS if name != "max_run_minutes"]
    return RunLimits(**{name: getattr(quota, name) for name in names})
