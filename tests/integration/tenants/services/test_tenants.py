"""The life of a tenant, and its audit trail."""

from collections.abc import Callable

import psycopg
import pytest
from django.db import IntegrityError

from executions.services.offboarding import advance_deletions
from foundation.errors import Conflict, InvalidInput, NotFound
from tenants.isolation import Isolation
from tenants.models import ApiKey, AuditEntry, Domain, Membership, Quota, Tenant, User
from tenants.provisioner import work_off
from tenants.roles import Role
from tenants.run_limits import QUOTA_LIMITS
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.selectors import tenant_by_host, tenant_by_schema
from tenants.services import tenants as service
from tenants.services.api_keys import create_api_key
from tenants.services.audit import record
from tenants.services.tenants import (
    NameWasUsed,
    TenantExists,
    create_tenant,
    set_status,
    update_tenant,
)
from tenants.statuses import TenantStatus
from tests.factories import make_tenant

Server = psycopg.Connection[tuple[object, ...]]


def actions(tenant: TenantRef) -> list[str]:
    """Return the audit trail of a tenant, oldest first."""
    with platform_scope():
        entries = AuditEntry.objects.filter(tenant_id=tenant.id).order_by("id")
        return [f"{entry.actor} {entry.action} {entry.subject}" for entry in entries]


def test_a_tenant_is_made_as_asked(acme: TenantRef) -> None:
    made = create_tenant(
        schema="initech",
        name="Initech Ltd",
        domain="Initech.Example.com",
        trusted=True,
        required_isolation=Isolation.DOCKER,
        max_running=2,
        actor="tests",
    )
    with platform_scope():
        row = Tenant.objects.select_related("quota").get(pk=made.id)
        assert (row.schema_name, row.name, row.status) == ("initech", "Initech Ltd", "creating")
        assert (row.trusted, row.required_isolation) == (True, "docker")
        assert row.quota.max_running == 2
    assert tenant_by_host("initech.example.com") == tenant_by_schema("initech") == made
    assert actions(made) == ["tests tenant.create initech"]


def test_what_is_not_said_has_safe_defaults(acme: TenantRef) -> None:
    made = make_tenant("ini_tech")
    assert tenant_by_host("ini-tech.isolane.test") == made
    with platform_scope():
        row = Tenant.objects.get(pk=made.id)
        assert (row.name, row.trusted, row.required_isolation) == ("ini_tech", False, "process")


@pytest.mark.parametrize(
    ("said", "required"),
    [
        ({"trusted": True}, "shared"),
        ({"trusted": True, "required_isolation": Isolation.PROCESS}, "process"),
        ({"required_isolation": Isolation.SHARED}, "shared"),
    ],
)
def test_trust_is_given_for_the_sake_of_shared_unless_another_level_is_said(
    acme: TenantRef, said: dict[str, object], required: str
) -> None:
    made = create_tenant(schema="initech", actor="tests", **said)  # type: ignore[arg-type]
    with platform_scope():
        assert Tenant.objects.get(pk=made.id).required_isolation == required


def nothing_is_written(act: Callable[[], object], error: type[Exception]) -> str:
    """Fail, find the rows unchanged, and return the error's text."""
    models = (Tenant, Domain, Quota, AuditEntry)
    with platform_scope():
        before = [model.objects.count() for model in models]
    with pytest.raises(error) as failed:
        act()
    with platform_scope():
        assert [model.objects.count() for model in models] == before
    return str(failed.value)


def test_a_tenants_rows_are_written_together_or_not_at_all(
    acme: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service, "record", fail)
    nothing_is_written(lambda: create_tenant(schema="half", actor="tests"), ZeroDivisionError)


def test_a_schema_that_another_tenant_has(acme: TenantRef) -> None:
    create_tenant(schema="domain", actor="tests")  # a name that the error's own words hold

    def again() -> None:
        create_tenant(schema="domain", domain="other.isolane.test", actor="tests")

    assert "There is a tenant 'domain' already" in nothing_is_written(again, TenantExists)


def test_a_domain_that_another_tenant_has(acme: TenantRef) -> None:
    def again() -> None:
        create_tenant(schema="other", domain="Acme.isolane.test", actor="tests")

    said = nothing_is_written(again, TenantExists)
    assert "The domain 'acme.isolane.test' is taken" in said


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("schema", {"schema": "public"}),
        ("max_running", {"max_running": 0}),
        ("max_running", {"max_running": 10_001}),
        ("name", {"name": "x" * 201}),
        ("domain", {"domain": "https://initech.example.com"}),
    ],
)
def test_wrong_values_are_refused_by_name(
    acme: TenantRef, field: str, wrong: dict[str, object]
) -> None:
    arguments: dict[str, object] = {"schema": "initech", "actor": "tests", **wrong}
    with pytest.raises(InvalidInput) as refused:
        create_tenant(**arguments)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_what_was_said_is_changed_and_the_rest_stays(acme: TenantRef, globex: TenantRef) -> None:
    def said(tenant: TenantRef) -> tuple[object, ...]:
        with platform_scope():
            row = Tenant.objects.select_related("quota").get(pk=tenant.id)
            return row.name, row.trusted, row.required_isolation, row.quota.max_running

    update_tenant(schema="acme", trusted=False, max_running=9, actor="alice")
    assert said(acme) == ("acme", False, "shared", 9)
    update_tenant(schema="acme", required_isolation=Isolation.DOCKER, actor="alice")
    assert said(acme) == ("acme", False, "docker", 9)
    assert said(globex) == ("globex", True, "shared", 5)
    with platform_scope():
        details = AuditEntry.objects.filter(action="tenant.change").order_by("id").first()
    assert details is not None
    assert details.details == {"trusted": False, "max_running": 9}


def test_a_change_that_does_not_fit_is_refused(acme: TenantRef) -> None:
    with pytest.raises(InvalidInput, match="max_running is 0"):
        update_tenant(schema="acme", max_running=0, actor="alice")
    with pytest.raises(InvalidInput, match="use a whole number from 1 to 10000"):
        update_tenant(schema="acme", max_running=99_999_999_999, actor="alice")
    with pytest.raises(InvalidInput, match="name has 201 characters; use at most 200"):
        update_tenant(schema="acme", name="x" * 201, actor="alice")
    with pytest.raises(NotFound):
        update_tenant(schema="nobody", max_running=1, actor="alice")


# --- budgets
def budgets() -> dict[str, object]:
    with platform_scope():
        return dict(Quota.objects.values_list("tenant__schema_name", "budget"))


def test_a_budget_is_changed_kind_by_kind(acme: TenantRef) -> None:
    initech = make_tenant("initech")
    assert budgets() == {"acme": {}, "globex": {}, "initech": {}}
    update_tenant(schema="initech", budget={"tokens": 1000, "usd": 2.5}, actor="alice")
    update_tenant(schema="initech", budget={"usd": None, "calls": 7}, max_running=2, actor="alice")
    update_tenant(schema="initech", trusted=True, actor="alice")
    assert budgets() == {"acme": {}, "globex": {}, "initech": {"tokens": 1000, "calls": 7}}
    with tenant_scope(initech):
        assert [quota.budget for quota in Quota.objects.all()] == [{"tokens": 1000, "calls": 7}]
    with platform_scope():
        entries = AuditEntry.objects.filter(action="tenant.change").order_by("id")
        assert [entry.details for entry in entries] == [
            {"budget": {"tokens": 1000, "usd": 2.5}},
            {"budget": {"tokens": 1000, "calls": 7}, "max_running": 2},
            {"trusted": True},
        ]


@pytest.mark.parametrize(
    "wrong", [{"tokens": 0}, {"tokens": float("inf")}, {"Tokens": 1}, {"tokens": None}]
)
def test_a_budget_that_does_not_fit_changes_nothing(
    acme: TenantRef, wrong: dict[str, float | None]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        update_tenant(schema="acme", name="other", max_running=3, budget=wrong, actor="alice")
    assert refused.value.field == "budget"
    assert budgets() == {"acme": {}, "globex": {}}
    with platform_scope():
        row = Tenant.objects.select_related("quota").get(pk=acme.id)
        assert (row.name, row.quota.max_running) == ("acme", 5)


# --- limits of a run
def limits() -> dict[str, object]:
    with platform_scope():
        quotas = Quota.objects.select_related("tenant")
        return {quota.tenant.schema_name: quota.limits for quota in quotas}


def test_limits_are_changed_one_by_one(acme: TenantRef, globex: TenantRef) -> None:
    assert limits() == {"acme": {}, "globex": {}}
    update_tenant(schema="acme", limits={"ram_mb": 2048, "cpu": 0.5}, actor="alice")
    update_tenant(schema="acme", limits={"cpu": None, "max_run_minutes": 30}, actor="alice")
    update_tenant(schema="acme", max_running=2, actor="alice")
    assert limits() == {"acme": {"ram_mb": 2048, "max_run_minutes": 30}, "globex": {}}
    with platform_scope():
        entries = AuditEntry.objects.filter(action="tenant.change").order_by("id")
        assert [entry.details for entry in entries] == [
            {"ram_mb": 2048, "cpu": 0.5},
            {"cpu": None, "max_run_minutes": 30},
            {"max_running": 2},
        ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ram_mb": 63}, "limit ram_mb is 63; use a whole number from 64 to 1048576, or none"),
        ({"processes": 16.5}, "limit processes is 16.5; use a whole number from 8 to 32768"),
        (
            {"max_run_minutes": 10081},
            "max_run_minutes is 10081; use a whole number from 1 to 10080",
        ),
        ({"cpu": float("nan")}, "limit cpu is nan; use a number from 0.1 to 1024"),
        ({"memory": 5}, "There is no limit 'memory'; use one of cpu, ram_mb, "),
    ],
)
def test_a_limit_that_does_not_fit_changes_nothing(
    acme: TenantRef, globex: TenantRef, wrong: dict[str, float], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        update_tenant(schema="acme", max_running=3, limits={"disk_mb": 5, **wrong}, actor="alice")
    assert refused.value.field == "limit"
    assert limits() == {"acme": {}, "globex": {}}
    with platform_scope():
        assert Quota.objects.get(tenant_id=acme.id).max_running == 5


@pytest.mark.parametrize("name", sorted(QUOTA_LIMITS))
def test_the_database_keeps_the_ranges(acme: TenantRef, globex: TenantRef, name: str) -> None:
    bounds = QUOTA_LIMITS[name]
    with platform_scope():
        quotas = Quota.objects.filter(tenant_id=acme.id)
        for fits in (bounds.least, bounds.most, None):
            assert quotas.update(**{name: fits}) == 1
        for wrong in (bounds.least / 2 if name == "cpu" else bounds.least - 1, bounds.most + 1):
            with pytest.raises(IntegrityError, match=f"quota_{name}_in_range"):
                quotas.update(**{name: wrong})
    assert limits() == {"acme": {}, "globex": {}}


def test_suspending_and_resuming_one_leaves_the_other_alone(
    acme: TenantRef, globex: TenantRef
) -> None:
    suspended = set_status(schema="acme", status=TenantStatus.SUSPENDED, actor="alice")
    assert suspended == tenant_by_schema("acme")
    assert suspended.status == TenantStatus.SUSPENDED
    assert tenant_by_schema("globex").status == TenantStatus.ACTIVE
    resumed = set_status(schema="acme", status=TenantStatus.ACTIVE, actor="bob")
    assert resumed.status == TenantStatus.ACTIVE
    assert actions(acme)[-2:] == ["alice tenant.suspended acme", "bob tenant.active acme"]


def test_deleting_cannot_be_undone(acme: TenantRef, globex: TenantRef) -> None:
    set_status(schema="acme", status=TenantStatus.DELETING, actor="alice")
    for status in (TenantStatus.ACTIVE, TenantStatus.SUSPENDED):
        with pytest.raises(Conflict, match="cannot be undone"):
            set_status(schema="acme", status=status, actor="alice")
    set_status(schema="acme", status=TenantStatus.DELETING, actor="alice")  # again: nothing new
    assert tenant_by_schema("acme").status == TenantStatus.DELETING
    assert actions(acme).count("alice tenant.deleting acme") == 1


def test_an_unknown_tenant_has_no_status(acme: TenantRef) -> None:
    with pytest.raises(NotFound, match="There is no tenant 'nobody'"):
        set_status(schema="nobody", status=TenantStatus.SUSPENDED, actor="alice")


def test_the_end_of_a_tenant_leaves_only_its_audit_trail(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    gone = make_tenant("gone")
    for tenant in (gone, globex):
        create_api_key(tenant=tenant, name="key", actor="tests")
    with platform_scope():
        user = User.objects.create(username="alice")
        Membership.objects.create(user=user, tenant_id=gone.id, role=Role.ADMIN)
    set_status(schema="gone", status=TenantStatus.DELETING, actor="tests")

    advance_deletions()
    work_off()

    with platform_scope():
        for model in (ApiKey, Membership, Domain, Quota):
            assert not model.objects.filter(tenant_id=gone.id).exists()
        assert ApiKey.objects.filter(tenant_id=globex.id).exists()
        assert User.objects.filter(username="alice").exists()
    with pytest.raises(NotFound):
        tenant_by_schema("gone")
    left = superuser.execute(
        "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'gone'), "
        "(SELECT count(*) FROM pg_roles WHERE rolname = %s)",
        [f"isolane_t_{gone.id}"],
    )
    assert left.fetchone() == (0, 0)
    assert actions(gone)[0] == "tests tenant.create gone"
    assert actions(gone)[-1] == "system tenant.purged gone"


def test_an_interrupted_end_is_taken_up_again(acme: TenantRef, superuser: Server) -> None:
    gone = make_tenant("gone")
    set_status(schema="gone", status=TenantStatus.DELETING, actor="tests")
    superuser.execute("DROP SCHEMA gone CASCADE")
    for _ in range(2):
        advance_deletions()
        work_off()
    assert actions(gone).count("system tenant.purged gone") == 1
    assert not Tenant.objects.filter(pk=gone.id).exists()


def test_a_namesake_of_a_deleted_tenant_sees_nothing_of_it_and_is_asked_for_by_name(
    acme: TenantRef,
) -> None:
    old = make_tenant("phoenix")
    with tenant_scope(old):
        record(action="test.old", actor="old", tenant=old)
    set_status(schema="phoenix", status=TenantStatus.DELETING, actor="tests")
    advance_deletions()
    work_off()

    with pytest.raises(NameWasUsed, match="isolane tenants create phoenix --reuse-name"):
        create_tenant(schema="phoenix", actor="tests")
    new = make_tenant("phoenix", reuse_name=True)

    assert new.id != old.id
    with tenant_scope(new):
        assert [entry.action for entry in AuditEntry.objects.all()] == ["tenant.create"]
    assert "old test.old " in actions(old)
