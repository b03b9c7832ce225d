"""Creating, changing, suspending, resuming and deleting tenants."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from psycopg import Error as DbError

from foundation.errors import Conflict, InvalidInput, NotFound
from foundation.limit_bounds import Number
from tenants.budgets import Amount, changed_budget
from tenants.failures import NO_FAILURE
from tenants.isolation import Isolation, default_requirement
from tenants.models import Domain, FormerTenant, Quota, Tenant
from tenants.names import check_domain, check_label, check_schema_name, default_domain
from tenants.run_limits import check_limits
from tenants.scope import TenantRef, platform_scope
from tenants.services.audit import record
from tenants.statuses import TenantStatus

NAME_LENGTH = 200
MAX_RUNNING = 10_000
_WORKING = (TenantStatus.ACTIVE, TenantStatus.SUSPENDED)
_DELETABLE = (*_WORKING, TenantStatus.CREATING)


class TenantExists(Conflict):
    """The schema or domain is taken."""

    code = "tenant_exists"


class NameWasUsed(Conflict):
    """A deleted tenant had this name."""

    code = "tenant_name_was_used"


def create_tenant(
    *,
    schema: str,
    actor: str,
    name: str = "",
    domain: str = "",
    trusted: bool = False,
    required_isolation: Isolation | None = None,
    max_running: int = 5,
    reuse_name: bool = False,
) -> TenantRef:
    """Write the rows of a new tenant; it is active once a provisioner has created its schema and role.

    Unless a level is given, it requires `process`, or `shared` if it is trusted.
    """
    check_schema_name(schema)
    check_label(name, most=NAME_LENGTH)
    _check_max_running(max_running)
    host = check_domain(domain or default_domain(schema, settings.BASE_HOST))
    try:
        with platform_scope(), transaction.atomic():
            if not reuse_name:
                _check_never_used(schema)
            tenant = Tenant(
                schema_name=schema,
                name=name or schema,
                trusted=trusted,
                required_isolation=required_isolation or default_requirement(trusted=trusted),
            )
            Tenant.objects.bulk_create([tenant])
            Domain.objects.bulk_create([Domain(tenant=tenant, domain=host, is_primary=True)])
            Quota.objects.create(tenant=tenant, max_running=max_running)
            ref: TenantRef = tenant.ref
            record(action="tenant.create", actor=actor, tenant=ref, subject=schema, domain=host)
    except IntegrityError as error:
        table = error.__cause__.diag.table_name if isinstance(error.__cause__, DbError) else ""
        if table == Domain._meta.db_table:
            raise TenantExists(
                f"The domain {host!r} is taken by another tenant; choose another."
            ) from None
        raise TenantExists(
            f"There is a tenant {schema!r} already; 'isolane tenants list' shows its status."
        ) from None
    return ref


def update_tenant(
    *,
    schema: str,
    actor: str,
    name: str | None = None,
    trusted: bool | None = None,
    required_isolation: Isolation | None = None,
    max_running: int | None = None,
    budget: Mapping[str, Amount | None] | None = None,
    limits: Mapping[str, Number | None] | None = None,
) -> None:
    """Change a tenant; fields, budget kinds and limits not given stay. Trust and level count for runs submitted later.

    None removes a kind of the budget, and gives a limit back to the platform's default.
    """
    given = {"name": name, "trusted": trusted, "required_isolation": required_isolation}
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    check_label(name or "", most=NAME_LENGTH)
    if max_running is not None:
        _check_max_running(max_running)
    check_limits(limits or {})
    with platform_scope(), transaction.atomic():
        tenant = Tenant.objects.filter(schema_name=schema).first()
        if tenant is None:
            raise _no_tenant(schema)
        if changes:
            Tenant.objects.filter(pk=tenant.pk).update(**changes)
        changes |= _change_quota(tenant.pk, max_running, budget or {}, limits or {})
        record(action="tenant.change", actor=actor, tenant=tenant.ref, subject=schema, **changes)


def set_status(*, schema: str, status: TenantStatus, actor: str) -> TenantRef:
    """Suspend or resume a tenant, or begin its deletion; a tenant being deleted stays so."""
    deleting = status == TenantStatus.DELETING
    may_change = _DELETABLE if deleting else _WORKING
    # An earlier failure must not delay the deletion.
    also = NO_FAILURE if deleting else {}
    with platform_scope(), transaction.atomic():
        changed = Tenant.objects.filter(schema_name=schema, status__in=may_change).update(
            status=status, **also
        )
        tenant = Tenant.objects.filter(schema_name=schema).first()
        if tenant is None:
            raise _no_tenant(schema)
        if not changed and not deleting:
            raise _not_now(tenant)
        if changed:
            record(action=f"tenant.{status}", actor=actor, tenant=tenant.ref, subject=schema)
        ref: TenantRef = tenant.ref
    return ref


def hand_to_provisioner(tenant: TenantRef) -> None:
    """Ask for a tenant to be dropped whose runs have all ended; in the caller's scope."""
    Tenant.objects.filter(pk=tenant.id, status=TenantStatus.DELETING).update(
        status=TenantStatus.PURGING, **NO_FAILURE
    )


def _change_quota(
    tenant_id: int,
    max_running: int | None,
    budget: Mapping[str, Amount | None],
    limits: Mapping[str, Number | None],
) -> dict[str, Any]:
    quotas = Quota.objects.filter(tenant_id=tenant_id)
    changes: dict[str, Any] = dict(limits)
    if max_running is not None:
        changes["max_running"] = max_running
    if budget:
        # Locked: another kind may be changed at the same time.
        changes["budget"] = changed_budget(quotas.select_for_update().get().budget, budget)
    if changes:
        quotas.update(**changes)
    return changes


def _check_max_running(wanted: int) -> None:
    if not 1 <= wanted <= MAX_RUNNING:
        raise InvalidInput(
            f"max_running is {wanted}; use a whole number from 1 to {MAX_RUNNING}.",
            field="max_running",
        )


def _no_tenant(schema: str) -> NotFound:
    return NotFound(
        f"There is no tenant {schema!r}; 'isolane tenants list' shows them.", field="schema"
    )


def _not_now(tenant: Tenant) -> Conflict:
    if tenant.status == TenantStatus.CREATING:
        return Conflict(
            f"Tenant {tenant.schema_name!r} is being created; wait until it is active, or delete it.",
            field="schema",
        )
    return Conflict(
        f"Tenant {tenant.schema_name!r} is being deleted; that cannot be undone.", field="schema"
    )


def _check_never_used(schema: str) -> None:
    former = FormerTenant.objects.filter(schema_name=schema).first()
    if former is not None:
        raise NameWasUsed(
            f"A tenant {schema!r} was deleted on {former.purged_at:%Y-%m-%d}. Secrets that definitions name as env: "
            "and file: are found by the tenant's name: remove those of the former tenant, then allow the name to be "
            f"used again ('isolane tenants create {schema} --reuse-name'), or choose another name.",
            field="schema",
        )
