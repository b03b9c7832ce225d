"""The isolation levels that the living workers offer to the runs of a tenant."""

from executions.placement.registry import living
from orchestrator.norp.probe_runner import NotRun
from resources.isolation_choice import IsolationUnavailable, choose, describe_reason
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope


def require_worker() -> None:
    """Raise NotRun if no worker is alive."""
    with platform_scope():
        if not living().exists():
            raise NotRun("No worker is alive, so nothing can be run; start one ('make up').")


def levels_of(tenant: TenantRef) -> dict[Isolation, str]:
    """Return every level with the reason why a run of this tenant cannot have it; empty if it can."""
    with platform_scope():
        row = Tenant.objects.get(pk=tenant.id)
        offered = {Isolation(level) for worker in living() for level in worker.isolation_levels}
    return {level: _refusal(level, row, frozenset(offered)) for level in Isolation}


def _refusal(level: Isolation, tenant: Tenant, offered: frozenset[Isolation]) -> str:
    if level not in offered:
        return f"no worker offers it; offered are {', '.join(sorted(offered)) or 'none'}"
    try:
        decision = choose(
            required=Isolation(tenant.required_isolation),
            trusted=tenant.trusted,
            available=offered,
            requested=level,
        )
    except IsolationUnavailable as error:
        return error.detail
    if decision.level is level:
        return ""
    return f"it would get {decision.level}: {describe_reason(decision.reason)}"
