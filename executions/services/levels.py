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
from resources.isolation_choice import IsolationDecision, IsolationUnavailable, choose
from tenants.isolation import Isolation
from tenants.models import Quota, Tenant
from tenants.run_limits import QUOTA_LIMITS
from tenants.scope import TenantRef, platform_scope


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantLevels:
    """The level and limits of a run whose blueprint asks for nothing."""

    offered: tuple[Isolation, ...]  # by the living workers, the weakest first
    decision: IsolationDecision | None  # None if no worker offers what the tenant needs
    limits: RunLimits
    max_run_minutes: int | None


def levels_of(tenant: TenantRef) -> TenantLevels:
    """Return the levels that workers offer, the one that this tenant's runs get, and their limits."""
    with platform_scope():
        found = Tenant.objects.get(pk=tenant.id)
        quota = Quota.objects.get(tenant=found)
        try:
            offered = current_offer().isolation_levels
        except NoWorkerYet:
            offered = frozenset()
    return TenantLevels(
        offered=tuple(sorted(offered, key=lambda level: level.strictness)),
        decision=_decision(found, offered),
        limits=effective_limits(
            default=settings.RUN_LIMITS, quota=_limits(quota), blueprint=RunLimits()
        ),
        max_run_minutes=quota.max_run_minutes,
    )


def _decision(tenant: Tenant, offered: frozenset[Isolation]) -> IsolationDecision | None:
    try:
        return choose(
            required=Isolation(tenant.required_isolation),
            trusted=tenant.trusted,
            available=offered,
        )
    except IsolationUnavailable:
        return None


def _limits(quota: Quota) -> RunLimits:
    names = [name for name in QUOTA_LIMITS if name != "max_run_minutes"]
    return RunLimits(**{name: getattr(quota, name) for name in names})
