"""`isolane tenants`."""

import psycopg
import pytest

from executions.placement.models import Worker
from executions.services.offboarding import advance_deletions
from foundation.errors import Conflict, InvalidInput, NotFound, Unavailable
from orchestrator.cli.commands import tenants
from tenants.models import AuditEntry, Quota, Tenant
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope
from tenants.selectors import tenant_by_host, tenant_by_schema
from tests.factories import let_lapse, make_boot, make_tenant
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.provisioners import running_provisioner
from tests.waiting import wait_for

Server = psycopg.Connection[tuple[object, ...]]


@pytest.mark.usefixtures("provisioner")
def test_create_makes_what_list_shows(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    made = isolane(
        "tenants", "create", "initech", "--name", "Initech Ltd", "--domain", "runs.initech.example",
        "--trusted", "--isolation", "docker", "--max-running", "3",
    )  # fmt: skip
    assert made.exit_code == 0
    assert "Tenant initech is ready." in made.output
    ref = tenant_by_host("runs.initech.example")
    assert ref == tenant_by_schema("initech")
    rows = isolane("tenants", "list").output.splitlines()
    shown = next(row for row in rows if "initech" in row)
    for word in ("Initech Ltd", "active", "yes", "docker", "3", "runs.initech.example"):
        assert word in shown
    assert any("acme.isolane.test" in row for row in rows)
    with platform_scope():
        entry = AuditEntry.objects.get(action="tenant.create", tenant_schema="initech")
    assert entry.actor.startswith("cli:")


@pytest.mark.usefixtures("provisioner")
def test_create_says_that_it_waits_and_which_level_runs_get_or_warns_at_once(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    early = isolane("tenants", "create", "initech")
    assert (early.exit_code, "is ready" in early.stdout) == (0, True)
    assert "Waiting for a provisioner to create schema and role of initech" in early.stderr
    assert "Warning: No worker runs now. Runs of initech need the level process" in early.stderr
    boot = make_boot()
    refused = isolane("tenants", "create", "umbrella")
    assert (refused.exit_code, "Warning" in refused.stdout) == (0, False)
    assert "Warning: Runs of umbrella are refused now. They need isolation" in refused.stderr
    assert "'isolane tenants set umbrella --trusted --isolation shared'" in refused.stderr
    trusted = isolane("tenants", "create", "hooli", "--trusted")
    assert "New runs of hooli have the level shared: the tenant requires it." in trusted.stderr
    with platform_scope():
        Worker.objects.filter(boot=boot.id).update(isolation_levels=["process", "shared"])
    sandboxed = isolane("tenants", "create", "piedpiper")
    assert "New runs of piedpiper have the level process: the tenant requires" in sandboxed.stderr
    let_lapse(boot)
    late = isolane("tenants", "create", "aviato", "--isolation", "shared")
    assert "Warning: No worker runs now. Runs of aviato need the level process" in late.stderr
    assert "(the tenant is not trusted" in late.stderr


def test_set_says_which_level_new_runs_get_and_only_where_it_may_have_changed(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    make_boot()
    strict = isolane("tenants", "set", "acme", "--isolation", "process")
    assert (strict.exit_code, strict.stdout) == (0, "Tenant acme is changed.\n")
    assert "Warning: Runs of acme are refused now." in strict.stderr
    assert "'isolane tenants set acme --isolation shared'" in strict.stderr
    back = isolane("tenants", "set", "acme", "--isolation", "shared")
    assert back.stderr == "New runs of acme have the level shared: the tenant requires it.\n"
    distrusted = isolane("tenants", "set", "acme", "--untrusted")
    assert "Warning: Runs of acme are refused now." in distrusted.stderr
    assert isolane("tenants", "set", "acme", "--max-running", "2").stderr == ""


def test_create_says_that_no_provisioner_runs_and_goes_on_with_one(
    isolane: Isolane, acme: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "CREATION_SECONDS", 0.1)
    with pytest.raises(Unavailable, match=r"no provisioner seems to run\. Start one with 'isolane"):
        isolane("tenants", "create", "initech")
    assert "creating" in isolane("tenants", "list").output
    work_off()
    assert tenant_by_schema("initech").status == "active"


@pytest.mark.usefixtures("provisioner")
def test_create_and_list_tell_why_it_could_not_be_made(
    isolane: Isolane, acme: TenantRef, superuser: Server
) -> None:
    superuser.execute("CREATE SCHEMA reports")
    try:
        with pytest.raises(
            Conflict, match="'reports' is not created yet: schema_taken: The database"
        ):
            isolane("tenants", "create", "reports")
    finally:
        superuser.execute("DROP SCHEMA reports")
    assert "schema_taken: The database has a schema 'reports'" in isolane("tenants", "list").output


def test_delete_says_what_it_waits_for(
    isolane: Isolane, acme: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant("gone")
    monkeypatch.setattr(tenants, "WAIT_SECONDS", 0.1)
    with pytest.raises(Unavailable, match=r"'gone' is not gone after 0\.1 s: no provisioner seems"):
        isolane("tenants", "delete", "gone", "--confirm", "gone", "--wait")
    assert tenant_by_schema("gone").status == "purging"


def test_create_takes_a_deleted_tenants_name_only_when_said_so(
    isolane: Isolane, acme: TenantRef
) -> None:
    make_tenant("gone")
    isolane("tenants", "delete", "gone", "--confirm", "gone")
    advance_deletions()
    with running_provisioner():
        wait_for(lambda: not Tenant.objects.filter(schema_name="gone").exists(), "its end")
        with pytest.raises(Conflict, match="--reuse-name"):
            isolane("tenants", "create", "gone")
        assert isolane("tenants", "create", "gone", "--reuse-name").exit_code == 0


def test_create_refuses_a_reserved_name(isolane: Isolane, acme: TenantRef) -> None:
    with pytest.raises(InvalidInput, match="'admin' is reserved"):
        isolane("tenants", "create", "admin")


@pytest.mark.parametrize(
    ("option", "value"), [("--name", "x" * 400), ("--max-running", "99999999999")]
)
@pytest.mark.parametrize("command", ["create", "set"])
def test_what_does_not_fit_is_refused_by_name(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, command: str, option: str, value: str
) -> None:
    schema = "initech" if command == "create" else "acme"
    with pytest.raises(InvalidInput) as refused:
        isolane("tenants", command, schema, option, value)
    assert refused.value.field == option.strip("-").replace("-", "_")


def test_create_refuses_an_unknown_isolation(isolane: Isolane, acme: TenantRef) -> None:
    refused = isolane("tenants", "create", "initech", "--isolation", "none")
    assert refused.exit_code == 2
    assert "'none' is not one of" in refused.output


def test_set_changes_what_is_given(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    options = ("--untrusted", "--isolation", "process", "--max-running", "2")
    assert isolane("tenants", "set", "acme", *options).stdout == "Tenant acme is changed.\n"
    with platform_scope():
        changed = Tenant.objects.select_related("quota").get(schema_name="acme")
        assert (changed.name, changed.trusted) == ("acme", False)
        assert (changed.required_isolation, changed.quota.max_running) == ("process", 2)
        assert Tenant.objects.get(schema_name="globex").trusted


def test_set_changes_the_budget(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    make_tenant("initech")
    isolane("tenants", "set", "initech", "--budget", "tokens=1000000", "--budget", "usd=2.5")
    isolane("tenants", "set", "initech", "--budget", "usd=none", "--budget", "calls=1e3")
    with platform_scope():
        budgets = dict(Quota.objects.values_list("tenant__schema_name", "budget"))
    assert budgets == {"acme": {}, "globex": {}, "initech": {"tokens": 1_000_000, "calls": 1000}}
    rows = isolane("tenants", "list").output.splitlines()
    assert [row for row in rows if "tokens=1000000" in row] == [
        row for row in rows if "initech" in row
    ]


@pytest.mark.parametrize("wrong", ["tokens", "tokens=", "tokens=many", "tokens=nan", "tokens=-1", "tokens=0", "=5",
                                   "tokens=none", "tokens=" + "9" * 5000])  # fmt: skip
def test_set_refuses_a_budget_that_does_not_fit(
    isolane: Isolane, acme: TenantRef, wrong: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        isolane("tenants", "set", "acme", "--budget", wrong)
    assert refused.value.field == "budget"


def test_set_changes_the_limits_of_a_run(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    isolane("tenants", "set", "acme", "--limit", "ram_mb=2048", "--limit", "cpu=0.5")
    isolane("tenants", "set", "acme", "--limit", "cpu=none", "--limit", "max_run_minutes=30")
    with platform_scope():
        quotas = {quota.tenant_id: quota.limits for quota in Quota.objects.all()}
    assert quotas == {acme.id: {"ram_mb": 2048, "max_run_minutes": 30}, globex.id: {}}
    rows = isolane("tenants", "list").output.splitlines()
    assert [row for row in rows if "ram_mb=2048" in row] == [row for row in rows if "acme" in row]


@pytest.mark.parametrize("wrong", ["ram_mb", "ram_mb=", "ram_mb=much", "ram_mb=63", "ram_mb=-1", "cpu=nan", "=5",
                                   "memory=5", "cpu=" + "9" * 5000])  # fmt: skip
def test_set_refuses_a_limit_that_does_not_fit(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, wrong: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        isolane("tenants", "set", "acme", "--limit", wrong)
    assert refused.value.field == "limit"


def test_suspend_and_resume(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    assert isolane("tenants", "suspend", "acme").output == "Tenant acme is suspended.\n"
    assert tenant_by_schema("acme").status == "suspended"
    assert tenant_by_schema("globex").status == "active"
    assert isolane("tenants", "resume", "acme").output == "Tenant acme is active.\n"
    assert tenant_by_schema("acme").status == "active"


def test_delete_asks_for_the_name(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    refused = isolane("tenants", "delete", "acme", typed="globex\n")
    assert refused.exit_code == 1
    assert "Nothing was deleted: 'globex' is not 'acme'." in refused.output
    assert tenant_by_schema("acme").status == "active"
    assert tenant_by_schema("globex").status == "active"
    assert isolane("tenants", "delete", "acme", typed="acme\n").exit_code == 0
    assert tenant_by_schema("acme").status == "deleting"
    assert tenant_by_schema("globex").status == "active"


def test_delete_takes_the_name_as_an_option(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    assert isolane("tenants", "delete", "acme", "--confirm", "acm").exit_code == 1
    assert tenant_by_schema("acme").status == "active"
    assert isolane("tenants", "delete", "acme", "--confirm", "acme").exit_code == 0
    with pytest.raises(Conflict, match="cannot be undone"):
        isolane("tenants", "resume", "acme")


@pytest.mark.usefixtures("provisioner")
def test_delete_can_wait_until_everything_is_gone(
    isolane: Isolane, acme: TenantRef, superuser: Server
) -> None:
    ref = make_tenant("gone")
    deleted = isolane("tenants", "delete", "gone", "--confirm", "gone", "--wait")
    assert deleted.exit_code == 0
    assert "Tenant gone is gone." in deleted.output
    left = superuser.execute(
        "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'gone'), "
        "(SELECT count(*) FROM pg_roles WHERE rolname = %s)",
        [f"isolane_t_{ref.id}"],
    )
    assert left.fetchone() == (0, 0)
    assert not Tenant.objects.filter(pk=ref.id).exists()
    assert tenant_by_schema("acme") == acme


@pytest.mark.parametrize("command", ["suspend", "resume", "delete"])
def test_an_unknown_tenant(isolane: Isolane, acme: TenantRef, command: str) -> None:
    with pytest.raises(NotFound, match="There is no tenant 'nobody'"):
        isolane("tenants", command, "nobody")
