"""The provisioner: creates, migrates and drops tenants' schemas and roles, as the rows of tenants ask for it.

Timing: background-worker, in a process of its own, any number of them: each takes a row that no other holds.
Model: sync.
Guarantee: exactly-once; one transaction per tenant holds the row, the DDL and the new status.
Failure: continue; stored on the tenant's row and tried again later, other tenants go on.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from tenants.failures import NO_FAILURE, due, note_failure
from tenants.models import FormerTenant, Tenant
from tenants.names import TEMPLATE_SCHEMA
from tenants.owner import MIGRATION_LOCK, OWNER, owner_connection
from tenants.schemas import (
    create_schema,
    drop_role,
    drop_schema,
    migrate_schema,
    version_of,
    version_of_code,
)
from tenants.services.audit import record
from tenants.statuses import TenantStatus

PERIOD_SECONDS = 0.25
DATABASE_AWAY_SECONDS = 5.0
# A tenant whose tables are locked, and a provisioner that was stopped, must not keep the others waiting.
BEGIN = """
SELECT set_config('lock_timeout', '10s', true), set_config('idle_in_transaction_session_timeout', '60s', true),
       pg_try_advisory_xact_lock_shared(%s)"""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The result of one tenant's turn; `error` is empty if it succeeded."""

    schema: str
    error: str = ""


class Provisioner:
    """Works off what is due, until stopped."""

    def __init__(self, on_ready: Callable[[], None] = lambda: None) -> None:
        self._on_ready = on_ready
        self._ready = False
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop after the current tenant; may be called by a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Take turns until stopped, also while PostgreSQL is away."""
        owner_connection()
        while not self._stopping.is_set():
            try:
                busy = turn()
            except DatabaseError as error:
                reason = str(error).strip().partition("\n")[0]
                logger.warning("the database: %s", reason, extra={"event": "TURN_FAILED"})
                owner_connection().close()
                self._stopping.wait(DATABASE_AWAY_SECONDS)
                continue
            if not self._ready:
                self._ready = True
                self._on_ready()
            if not busy:
                self._stopping.wait(PERIOD_SECONDS)
        owner_connection().close()


def work_off() -> None:
    """Do everything that is due now, in this process."""
    while turn():
        pass


def turn() -> bool:
    """Create, drop or migrate one tenant; False if none is due, or public and the template are being changed."""
    asked = Tenant.objects.using(OWNER).filter(due(), status__in=TenantStatus.for_provisioner())
    if asked.exists() and act_on(asked):
        return True
    with owner_connection().cursor() as cursor:
        version = version_of(cursor, TEMPLATE_SCHEMA)
    if version != version_of_code():
        return (
            False  # provisioners of the template's version, older or newer than this one, migrate
        )
    outdated = behind(version).filter(due())
    return outdated.exists() and act_on(outdated) is not None


def behind(version: str) -> QuerySet[Tenant]:
    """Return tenants whose schema has other migrations than the template."""
    # Not "<>", which no index serves.
    differs = Q(schema_version__lt=version) | Q(schema_version__gt=version)
    rows: QuerySet[Tenant] = Tenant.objects.using(OWNER).filter(
        differs, status__in=TenantStatus.any()
    )
    return rows.exclude(schema_version="")


def act_on(rows: QuerySet[Tenant]) -> Done | None:
    """Act on the first of these tenants that no other session holds; None if there is none."""
    tenant = None
    doing = ""
    try:
        with transaction.atomic(using=OWNER):
            if not _may_begin():
                return None
            free = rows.select_for_update(skip_locked=True, no_key=True)
            tenant = free.order_by("id").first()
            if tenant is None:
                return None
            doing, act = _ACTS.get(TenantStatus(tenant.status), ("migrating", _migrate))
            act(tenant)
    except Exception as error:
        if tenant is None:
            raise
        failure = note_failure(tenant.pk, error, status=tenant.status, doing=doing, using=OWNER)
        return Done(schema=tenant.schema_name, error=failure)
    logger.info("%s tenant %s: done", doing, tenant, extra={"event": "PROVISIONED"})
    return Done(schema=tenant.schema_name)


def _may_begin() -> bool:
    with owner_connection().cursor() as cursor:
        cursor.execute(BEGIN, [MIGRATION_LOCK])
        return bool(cursor.fetchone()[-1])


def _make(tenant: Tenant) -> None:
    version = create_schema(tenant.pk, tenant.schema_name)
    _update(tenant, status=TenantStatus.ACTIVE, schema_version=version)


def _migrate(tenant: Tenant) -> None:
    _update(tenant, schema_version=migrate_schema(tenant.schema_name))


def _purge(tenant: Tenant) -> None:
    """Drop a tenant's schema and role. A tenant that was never made has no schema, even if one has its name."""
    made = bool(tenant.schema_version)
    if made:
        drop_schema(tenant.schema_name)
    if not drop_role(tenant.pk):
        return  # goes on next turn
    if made:
        FormerTenant.objects.using(OWNER).update_or_create(
            schema_name=tenant.schema_name, defaults={"purged_at": timezone.now()}
        )
    Tenant.objects.using(OWNER).filter(pk=tenant.pk).delete()
    record(
        action="tenant.purged",
        actor="system",
        tenant=tenant.ref,
        subject=tenant.schema_name,
        using=OWNER,
    )


def _update(tenant: Tenant, **values: str) -> None:
    Tenant.objects.using(OWNER).filter(pk=tenant.pk).update(**values, **NO_FAILURE)


_ACTS: dict[TenantStatus, tuple[str, Callable[[Tenant], None]]] = {
    TenantStatus.CREATING: ("making", _make),
    TenantStatus.PURGING: ("deleting", _purge),
}
