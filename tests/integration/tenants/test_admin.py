"""The platform's admin uses the same services as everything else."""

import re
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from executions.services.offboarding import advance_deletions
from tenants.admin.tenant import TenantForm
from tenants.models import ApiKey, AuditEntry, Domain, Membership, Quota, Tenant, User
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.selectors import tenant_by_host, tenant_by_schema
from tenants.services.api_keys import create_api_key, find_api_key
from tenants.services.tenants import create_tenant
from tests.factories import make_boot, make_tenant
from tests.integration.tenants.web import staff, visitor
from tests.plugin import SERVERS

Server = psycopg.Connection[tuple[object, ...]]
TENANTS = "/admin/tenants/tenant/"
KEYS = "/admin/tenants/apikey/"


@pytest.fixture
def operator(acme: TenantRef, globex: TenantRef) -> Client:
    return staff()


def staff_who_may(*codenames: str) -> Client:
    """Somebody who runs a part of the platform."""
    with platform_scope():
        user = User.objects.create(username="clerk", is_staff=True)
        rights = Permission.objects.filter(codename__in=codenames)
        assert len(rights) == len(codenames)
        user.user_permissions.set(rights)
    client = visitor()
    client.force_login(user)
    return client


def page(answer: Any) -> str:
    assert answer.status_code == 200, answer
    text: str = answer.content.decode()
    return text


def add(client: Client, **fields: str) -> str:
    form = {"name": "Initech Ltd", "required_isolation": "shared", **fields}
    return page(client.post(f"{TENANTS}add/", form, follow=True))


def entries(action: str) -> list[tuple[str, str]]:
    with platform_scope():
        found = AuditEntry.objects.filter(action=action, actor__startswith="user:")
        return [(entry.tenant_schema, entry.actor) for entry in found]


# --- making tenants
def test_a_tenant_made_in_the_admin_is_a_whole_one(operator: Client, superuser: Server) -> None:
    shown = add(operator, schema_name="initech", trusted="on")
    assert "was added successfully" in shown
    assert "Tenant initech is being created" in shown
    assert tenant_by_schema("initech").status == "creating"
    work_off()
    made = tenant_by_schema("initech")
    assert made.status == "active"
    assert tenant_by_host("initech.isolane.test") == made
    found = superuser.execute(
        "SELECT has_schema_privilege(%s, 'initech', 'USAGE')", [f"isolane_t_{made.id}"]
    )
    assert found.fetchone() == (True,)
    with tenant_scope(made):
        assert Quota.objects.get().max_running == 5
    assert entries("tenant.create") == [("initech", "user:operator")]


def test_the_level_of_new_runs_is_told_at_once(operator: Client, acme: TenantRef) -> None:
    made = add(operator, schema_name="initech", required_isolation="process")
    assert "No worker runs now. Runs of initech need the level process" in made
    make_boot()
    changed = change(operator, acme, required_isolation="process")
    assert "Runs of acme are refused now." in changed
    assert "isolane tenants set acme --isolation shared" in changed
    renamed = change(operator, acme, required_isolation="process", name="Acme Ltd")
    assert "was changed successfully" in renamed
    assert "refused now" not in renamed
    back = change(operator, acme)
    assert "New runs of acme have the level shared: the tenant requires it." in back


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("postgres", "is reserved; choose another"),
        ("Initech", "2 to 41 of a-z"),
        ("acme", "Tenant with this Schema already exists"),
    ],
)
def test_a_name_that_cannot_be_had_is_explained(
    operator: Client, schema: str, complaint: str
) -> None:
    shown = add(operator, schema_name=schema)
    assert complaint in shown
    assert 'name="schema_name"' in shown  # the form again, not an error page
    with platform_scope():
        assert Tenant.objects.count() == 2


def test_what_the_service_refuses_is_explained(operator: Client) -> None:
    make_tenant("other", domain="initech.isolane.test")
    shown = add(operator, schema_name="initech")
    assert "The domain &#x27;initech.isolane.test&#x27; is taken" in shown
    with platform_scope():
        assert Tenant.objects.count() == 3


def test_a_deleted_tenants_name_is_taken_only_when_said_so(operator: Client) -> None:
    make_tenant("initech")
    with platform_scope():
        initech = Tenant.objects.get(schema_name="initech")
    form = {"post": "yes", "confirm_name": "initech"}
    page(operator.post(f"{TENANTS}{initech.pk}/delete/", form, follow=True))
    advance_deletions()
    work_off()
    assert not Tenant.objects.filter(pk=initech.pk).exists()
    refused = add(operator, schema_name="initech")
    assert "are found by the tenant&#x27;s name" in refused
    assert "was added successfully" in add(operator, schema_name="initech", reuse_name="on")


def test_what_a_provisioner_could_not_do_is_shown(operator: Client, superuser: Server) -> None:
    superuser.execute("CREATE SCHEMA reports")
    try:
        add(operator, schema_name="reports")
        work_off()
    finally:
        superuser.execute("DROP SCHEMA reports")
    with platform_scope():
        reports = Tenant.objects.get(schema_name="reports")
    for path in (TENANTS, f"{TENANTS}{reports.pk}/change/"):
        assert "schema_taken: The database has a schema" in page(operator.get(path))


def test_a_change_leaves_alone_what_a_provisioner_writes_meanwhile(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    initech = create_tenant(schema="initech", actor="tests")

    def made_meanwhile(form: TenantForm) -> str:
        with psycopg.connect(SERVERS.superuser_url, dbname="isolane") as other:
            other.execute("UPDATE tenants_tenant SET status = 'active' WHERE id = %s", [initech.id])
        return str(form.cleaned_data["name"])

    monkeypatch.setattr(TenantForm, "clean_name", made_meanwhile, raising=False)
    change(operator, initech, name="Initech Ltd")
    with platform_scope():
        row = Tenant.objects.get(pk=initech.id)
    assert (row.status, row.name) == ("active", "Initech Ltd")


# --- changing tenants
def change(client: Client, tenant: TenantRef, **fields: str) -> str:
    with platform_scope():
        domain = Domain.objects.get(tenant_id=tenant.id, is_primary=True)
    form = {
        "name": tenant.schema,
        "trusted": "on",
        "required_isolation": "shared",
        "quota-TOTAL_FORMS": "1",
        "quota-INITIAL_FORMS": "1",
        "quota-0-tenant": str(tenant.id),
        "quota-0-max_running": "5",
        "domains-TOTAL_FORMS": "1",
        "domains-INITIAL_FORMS": "1",
        "domains-0-id": str(domain.pk),
        "domains-0-tenant": str(tenant.id),
        "domains-0-domain": domain.domain,
        "domains-0-is_primary": "on",
        **fields,
    }
    return page(client.post(f"{TENANTS}{tenant.id}/change/", form, follow=True))


def test_a_quota_is_changed_for_one_tenant(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    fields = {"quota-0-max_running": "17", "required_isolation": "docker"}
    assert "was changed successfully" in change(operator, acme, **fields)
    with platform_scope():
        quotas = dict(Quota.objects.values_list("tenant_id", "max_running"))
        assert quotas == {acme.id: 17, globex.id: 5}
        assert Tenant.objects.get(pk=acme.id).required_isolation == "docker"
    assert entries("tenant.change") == [("acme", "user:operator")]


@pytest.mark.parametrize("wrong", ["0", "10001"])
def test_a_quota_has_a_range(operator: Client, acme: TenantRef, wrong: str) -> None:
    shown = change(operator, acme, **{"quota-0-max_running": wrong})
    assert "Ensure this value is" in shown
    with tenant_scope(acme):
        assert Quota.objects.get().max_running == 5


def test_a_budget_is_set_and_emptied_for_one_tenant(operator: Client) -> None:
    initech = make_tenant("initech")

    def budgets() -> dict[str, object]:
        with platform_scope():
            return dict(Quota.objects.values_list("tenant__schema_name", "budget"))

    shown = change(operator, initech, **{"quota-0-budget": '{"tokens": 1000, "usd": 2.5}'})
    assert "was changed successfully" in shown
    assert budgets() == {"acme": {}, "globex": {}, "initech": {"tokens": 1000, "usd": 2.5}}
    # A browser sends what the page showed along, and an empty field counts as a change from that.
    before = {"initial-quota-0-budget": '{"tokens": 1000, "usd": 2.5}'}
    change(operator, initech, **{"quota-0-budget": "", **before})
    assert budgets() == {"acme": {}, "globex": {}, "initech": {}}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("tokens=5", "Enter a valid JSON"),
        ("[5]", "use an object such as"),
        ('{"tokens": 0}', "budget tokens is 0; use a number above 0"),
        ('{"tokens": NaN}', "budget tokens is nan; use a number above 0"),
    ],
)
def test_a_budget_that_does_not_fit_is_explained(
    operator: Client, acme: TenantRef, wrong: str, complaint: str
) -> None:
    assert complaint in change(operator, acme, **{"quota-0-budget": wrong})
    with tenant_scope(acme):
        assert Quota.objects.get().budget == {}


def test_limits_of_a_run_are_set_and_emptied_for_one_tenant(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    def limits() -> dict[int, object]:
        with platform_scope():
            return {quota.tenant_id: quota.limits for quota in Quota.objects.all()}

    given = {"quota-0-ram_mb": "2048", "quota-0-cpu": "0.5", "quota-0-max_run_minutes": "30"}
    assert "was changed successfully" in change(operator, acme, **given)
    assert limits() == {acme.id: {"cpu": 0.5, "ram_mb": 2048, "max_run_minutes": 30}, globex.id: {}}
    change(operator, acme, **given | {"quota-0-cpu": ""})
    assert limits() == {acme.id: {"ram_mb": 2048, "max_run_minutes": 30}, globex.id: {}}


@pytest.mark.parametrize(
    ("name", "wrong", "complaint"),
    [
        ("ram_mb", "63", "Ensure this value is greater than or equal to 64."),
        ("processes", "99999", "Ensure this value is less than or equal to 32768."),
        ("connections", "0", "Ensure this value is greater than or equal to 1."),
        ("cpu", "nan", "Enter a number."),
    ],
)
def test_a_limit_of_a_run_has_a_range(
    operator: Client, acme: TenantRef, globex: TenantRef, name: str, wrong: str, complaint: str
) -> None:
    assert complaint in change(operator, acme, **{f"quota-0-{name}": wrong})
    with tenant_scope(acme):
        assert Quota.objects.get().limits == {}


def test_a_schema_keeps_its_name(operator: Client, acme: TenantRef) -> None:
    change(operator, acme, schema_name="other")
    assert tenant_by_schema("acme") == acme


def change_domain(client: Client, tenant: TenantRef, added: str) -> str:
    fields = {
        "domains-TOTAL_FORMS": "2",
        "domains-1-tenant": str(tenant.id),
        "domains-1-domain": added,
    }
    return change(client, tenant, **fields)


def test_a_domain_is_added_in_lower_case(operator: Client, acme: TenantRef) -> None:
    try:
        shown = change_domain(operator, acme, "Runs.Acme.example")
        assert "was changed successfully" in shown
        assert tenant_by_host("runs.acme.example") == acme
    finally:
        with platform_scope():
            Domain.objects.filter(domain__icontains="acme.example").delete()


def test_changes_of_quota_and_domains_are_in_the_audit_trail(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    def trail() -> list[tuple[str, str, Any, Any]]:
        with platform_scope():
            found = AuditEntry.objects.filter(action__in=["tenant.quota", "tenant.domain"])
            return [
                (entry.action, entry.tenant_schema, entry.actor, entry.details)
                for entry in found.order_by("id")
            ]

    added = {
        "domains-TOTAL_FORMS": "2",
        "domains-1-tenant": str(acme.id),
        "domains-1-domain": "Runs.Acme.example",
    }
    change(operator, acme)
    assert trail() == []  # nothing has changed
    try:
        budget = {"quota-0-max_running": "17", "quota-0-budget": '{"tokens": 9}'}
        change(operator, acme, **budget, **added)
        with platform_scope():
            made = Domain.objects.get(domain="runs.acme.example")
        kept = {"quota-0-max_running": "17", "quota-0-budget": '{"tokens": 9}'}
        kept |= {"initial-quota-0-budget": '{"tokens": 9}', "domains-INITIAL_FORMS": "2"}
        row = {"domains-1-id": str(made.pk), "domains-1-domain": "jobs.acme.example"}
        change(operator, acme, **kept, **added | row)
        change(operator, acme, **kept, **added | row, **{"domains-1-DELETE": "on"})
    finally:
        with platform_scope():
            Domain.objects.filter(domain__endswith="acme.example").delete()
    who = ("acme", "user:operator")
    assert trail() == [
        ("tenant.quota", *who, {
            "before": {"max_running": 5, "budget": {}},
            "after": {"max_running": 17, "budget": {"tokens": 9}},
        }),
        ("tenant.domain", *who, {
            "before": {}, "after": {"domain": "runs.acme.example", "is_primary": False},
        }),
        ("tenant.domain", *who, {
            "before": {"domain": "runs.acme.example"}, "after": {"domain": "jobs.acme.example"},
        }),
        ("tenant.domain", *who, {
            "before": {"domain": "jobs.acme.example", "is_primary": False}, "after": {},
        }),
    ]  # fmt: skip


def test_a_domain_that_is_none_is_explained(operator: Client, acme: TenantRef) -> None:
    shown = change_domain(operator, acme, "https://acme.example/")
    assert "is not a host name" in shown


# --- statuses
def act(client: Client, action: str, *tenants: TenantRef) -> str:
    form = {"action": action, "_selected_action": [str(tenant.id) for tenant in tenants]}
    return page(client.post(TENANTS, form, follow=True))


def test_tenants_are_suspended_and_resumed(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    assert "Tenant acme is suspended." in act(operator, "suspend", acme)
    assert tenant_by_schema("acme").status == "suspended"
    assert tenant_by_schema("globex").status == "active"
    act(operator, "resume", acme, globex)
    assert tenant_by_schema("acme").status == "active"
    assert entries("tenant.suspended") == [("acme", "user:operator")]


def test_there_is_no_deletion_in_bulk(operator: Client, acme: TenantRef) -> None:
    assert "delete_selected" not in page(operator.get(TENANTS))
    act(operator, "delete_selected", acme)
    assert tenant_by_schema("acme").status == "active"


@pytest.mark.parametrize("typed", ["", "ACME", "globex"])
def test_nothing_is_deleted_without_the_name(
    operator: Client, acme: TenantRef, globex: TenantRef, typed: str
) -> None:
    form = {"post": "yes", "confirm_name": typed}
    shown = page(operator.post(f"{TENANTS}{acme.id}/delete/", form, follow=True))
    assert "Nothing was deleted: type acme to confirm." in shown
    assert tenant_by_schema("acme").status == "active"


def test_the_typed_name_begins_the_deletion(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    assert "Type <strong>acme</strong>" in page(operator.get(f"{TENANTS}{acme.id}/delete/"))
    form = {"post": "yes", "confirm_name": "acme"}
    page(operator.post(f"{TENANTS}{acme.id}/delete/", form, follow=True))
    assert tenant_by_schema("acme").status == "deleting"
    assert tenant_by_schema("globex").status == "active"
    assert entries("tenant.deleting") == [("acme", "user:operator")]
    assert "cannot be undone" in act(operator, "resume", acme)


# --- API keys
def test_a_key_is_shown_once_works_and_is_revoked(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    form = {"tenant": str(acme.id), "name": "ci", "role": "viewer", "expires_at_0": "", "expires_at_1": ""}  # fmt: skip
    shown = page(operator.post(f"{KEYS}add/", form, follow=True))
    keys = set(re.findall(r"isl_[\w-]{43}", shown))
    assert len(keys) == 1
    key = keys.pop()
    client = visitor(authorization=f"Bearer {key}")
    assert client.get("/api/v1/executions").status_code == 200
    assert key not in page(operator.get(KEYS))
    found = find_api_key(key)
    assert found is not None
    assert (found.tenant_id, found.role) == (acme.id, "viewer")

    page(operator.post(KEYS, {"action": "revoke", "_selected_action": str(found.pk)}, follow=True))
    assert client.get("/api/v1/executions").status_code == 401
    assert entries("api_key.revoke") == [("acme", "user:operator")]


def test_a_key_is_neither_changed_nor_deleted(operator: Client, acme: TenantRef) -> None:
    form = {"tenant": str(acme.id), "name": "ci", "role": "viewer"}
    operator.post(f"{KEYS}add/", form)
    with platform_scope():
        key = ApiKey.objects.get()
    assert operator.post(f"{KEYS}{key.pk}/change/", form).status_code == 403
    assert operator.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_key_is_limited_to_blueprints(operator: Client, acme: TenantRef) -> None:
    form = {"tenant": str(acme.id), "name": "ci", "role": "viewer"}
    for sent, kept in (('["billing"]', ["billing"]), ("", None)):
        page(operator.post(f"{KEYS}add/", {**form, "blueprints": sent}, follow=True))
        with platform_scope():
            assert ApiKey.objects.latest("id").blueprints == kept
    assert "billing" in page(operator.get(KEYS))
    shown = page(operator.post(f"{KEYS}add/", {**form, "blueprints": '["No"]'}))
    assert "is not a blueprint&#x27;s name" in shown


# --- members
def test_a_member_is_limited_to_blueprints(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    members = "/admin/tenants/membership/"
    with platform_scope():
        user = User.objects.create(username="alice")
    form = {"user": str(user.pk), "role": "operator"}
    for tenant, sent in ((acme, '["hiring", "billing"]'), (globex, "")):
        fields = {**form, "tenant": str(tenant.id), "blueprints": sent}
        page(operator.post(f"{members}add/", fields, follow=True))
    with platform_scope():
        kept = dict(Membership.objects.values_list("tenant__schema_name", "blueprints"))
        changed = Membership.objects.get(tenant_id=acme.id).pk
    assert kept == {"acme": ["billing", "hiring"], "globex": None}
    fields = {**form, "tenant": str(acme.id), "blueprints": "[]"}
    shown = page(operator.post(f"{members}{changed}/change/", fields))
    assert "blueprints has 0 names; use 1 to 200" in shown


# --- staff with some rights
def test_who_may_only_look_changes_no_status(acme: TenantRef, globex: TenantRef) -> None:
    clerk = staff_who_may("view_tenant")
    assert 'value="suspend"' not in page(clerk.get(TENANTS))
    act(clerk, "suspend", acme, globex)
    assert {tenant_by_schema(name).status for name in ("acme", "globex")} == {"active"}


def test_who_may_change_tenants_suspends_them(acme: TenantRef, globex: TenantRef) -> None:
    act(staff_who_may("change_tenant"), "suspend", acme)
    assert tenant_by_schema("acme").status == "suspended"
    assert tenant_by_schema("globex").status == "active"


@pytest.mark.parametrize("typed", ["", "acme"])
def test_who_may_not_delete_is_refused_before_the_name(
    acme: TenantRef, globex: TenantRef, typed: str
) -> None:
    clerk = staff_who_may("view_tenant", "change_tenant")
    for path in (f"{TENANTS}{acme.id}/delete/", f"{TENANTS}999/delete/"):
        answer = clerk.post(path, {"post": "yes", "confirm_name": typed})
        assert answer.status_code == 403
    assert tenant_by_schema("acme").status == "active"


@pytest.mark.parametrize(("right", "revoked"), [("view_apikey", False), ("change_apikey", True)])
def test_revoking_needs_the_right_to_change(
    acme: TenantRef, globex: TenantRef, right: str, revoked: bool
) -> None:
    keys = [create_api_key(tenant=tenant, name="ci", actor="tests") for tenant in (acme, globex)]
    found = find_api_key(keys[0])
    assert found is not None
    form = {"action": "revoke", "_selected_action": str(found.pk)}
    page(staff_who_may(right).post(KEYS, form, follow=True))
    assert (find_api_key(keys[0]) is None) is revoked
    assert find_api_key(keys[1]) is not None


@pytest.mark.parametrize("kind", ["user", "group"])
def test_only_superusers_see_and_change_who_has_which_rights(
    acme: TenantRef, globex: TenantRef, kind: str
) -> None:
    pages = {"user": "/admin/tenants/user/", "group": "/admin/auth/group/"}[kind]
    clerk = staff_who_may(*(f"{verb}_{kind}" for verb in ("view", "add", "change", "delete")))
    with platform_scope():
        me = User.objects.get(username="clerk").pk
    assert pages not in page(clerk.get("/admin/"))
    for path in (
        "",
        "add/",
        f"{me}/change/",
        f"{me}/delete/",
        *([f"{me}/password/"] * (kind == "user")),
    ):
        assert clerk.get(f"{pages}{path}").status_code == 403, path
    clerk.post(f"{pages}{me}/change/", {"username": "clerk", "is_superuser": "on"})
    with platform_scope():
        assert not User.objects.filter(is_superuser=True).exists()


# --- reading
def test_the_audit_trail_is_read_and_not_written(operator: Client, acme: TenantRef) -> None:
    act(operator, "suspend", acme)
    trail = "/admin/tenants/auditentry/"
    shown = page(operator.get(trail))
    assert "tenant.suspended" in shown
    with platform_scope():
        entry = AuditEntry.objects.get(action="tenant.suspended")
    page(operator.get(f"{trail}{entry.pk}/change/"))
    assert operator.get(f"{trail}add/").status_code == 403
    assert operator.post(f"{trail}{entry.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    ["", "tenants/tenant/", "tenants/tenant/add/", "tenants/user/", "tenants/user/add/", "tenants/membership/",
     "tenants/membership/add/", "auth/group/", "auth/group/add/",
     "tenants/apikey/", "tenants/apikey/add/", "placement/worker/", "placement/ticket/"],
)  # fmt: skip
def test_every_page_opens(operator: Client, path: str) -> None:
    page(operator.get(f"/admin/{path}"))
