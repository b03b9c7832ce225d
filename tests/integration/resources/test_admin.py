"""Definitions for a tenant in the platform's admin, through the same services as everywhere."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from executions.models import Blueprint, BlueprintVersion
from resources.models import ResourceDefinition, Secret
from resources.selectors import definition
from resources.services.secrets import put_secret, resolve
from tenants.models import User
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import create_tenant
from tests.integration.resources.definitions import DATABASE, VALUE, audited, define
from tests.integration.tenants.web import host_of, member, program, staff, visitor


@pytest.fixture
def operator(acme: TenantRef, globex: TenantRef) -> Client:
    return staff()


def base(tenant: TenantRef) -> str:
    return f"/admin/tenants/tenant/{tenant.id}/"


def page(answer: Any) -> str:
    assert answer.status_code == 200, answer
    text: str = answer.content.decode()
    return text


def form(**changes: Any) -> dict[str, str]:
    fields = {
        "name": "billing-db",
        "type": "database",
        "config": json.dumps(DATABASE),
        "secrets": '{"password": "billing"}',
        "scope": "step",
    }
    return {**fields, **changes}


def clerk(*codenames: str) -> Client:
    with platform_scope():
        user = User.objects.create(username="clerk", is_staff=True)
        rights = Permission.objects.filter(
            codename__in=codenames, content_type__app_label__in=["resources", "tenants"]
        )
        assert len(rights) == len(codenames)
        user.user_permissions.set(rights)
    client = visitor()
    client.force_login(user)
    return client


def counts(tenant: TenantRef) -> tuple[int, int]:
    with tenant_scope(tenant):
        return ResourceDefinition.objects.count(), Secret.objects.count()


def test_the_pages_are_reached_from_the_tenants(operator: Client, acme: TenantRef) -> None:
    address = f"{base(acme)}resources/"
    assert f'href="{address}"' in page(operator.get(f"{base(acme)}change/"))
    assert "Resources of acme" in page(operator.get(address))


def test_a_secret_is_set_and_never_shown(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    sent = {"name": "billing", "value": VALUE}
    shown = page(operator.post(f"{base(acme)}secrets/set/", sent, follow=True))
    assert "The secret billing was set." in shown
    assert VALUE not in shown
    with tenant_scope(acme):
        assert resolve("acme", {"x": "billing"}) == {"x": VALUE}
    assert counts(globex) == (0, 0)
    refused = page(operator.post(f"{base(acme)}secrets/set/", {"name": "../x", "value": VALUE}))
    assert "is not usable: 1 to 63" in refused
    assert VALUE not in refused
    short = page(operator.post(f"{base(acme)}secrets/set/", {"name": "billing", "value": "123"}))
    assert "fewer than 6 characters" in short
    assert audited(acme) == [("secret.create", "billing", "user:operator")]


def test_a_definition_is_added_changed_and_deleted_for_one_tenant(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    define(globex)
    put_secret(acme, "billing", VALUE, actor="tests")
    shown = page(operator.post(f"{base(acme)}resources/add/", form(), follow=True))
    assert "The resource billing-db was added." in shown

    change = f"{base(acme)}resources/billing-db/change/"
    assert "db.example.com" in page(operator.get(change))
    config = json.dumps({**DATABASE, "port": 5433})
    # What cannot be changed is not, whatever is sent.
    sent = form(config=config, scope="execution", name="other", type="cache")
    assert "was changed" in page(operator.post(change, sent, follow=True))
    with tenant_scope(acme):
        found = definition("billing-db")
    assert (found.type, found.config["port"], found.scope) == ("database", 5433, "execution")
    with tenant_scope(globex):
        assert definition("billing-db").config == DATABASE

    delete = f"{base(acme)}resources/billing-db/delete/"
    assert "Delete the resource billing-db?" in page(operator.get(delete))
    assert counts(acme) == (1, 1)
    assert "was deleted" in page(operator.post(delete, follow=True))
    assert (counts(acme), counts(globex)) == ((0, 1), (1, 1))
    assert [entry for entry in audited(acme) if entry[2] == "user:operator"] == [
        ("resource.create", "billing-db", "user:operator"),
        ("resource.change", "billing-db", "user:operator"),
        ("resource.delete", "billing-db", "user:operator"),
    ]


def test_a_tenant_without_a_schema_has_no_pages(operator: Client) -> None:
    initech = create_tenant(schema="initech", actor="tests")
    for path in ("resources/", "secrets/set/"):
        answer = operator.get(f"{base(initech)}{path}", follow=True)
        assert "Tenant initech is being created; it has no resources." in page(answer)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "a'; drop table x"}, "is not usable: 1 to 63"),
        ({"config": "{"}, "Enter a valid JSON"),
        ({"config": "{}"}, "is missing"),
        ({"config": json.dumps({**DATABASE, "password": VALUE})}, "isolane secrets set"),
        (
            {"config": json.dumps({**DATABASE, "host": "127.0.0.1"})},
            "is not allowed for a resource",
        ),
        ({"secrets": '{"password": "nothing"}'}, "there is no secret &#x27;nothing&#x27;"),
        ({"type": "unknown"}, "Select a valid choice"),
    ],
)
def test_what_a_service_refuses_is_shown_in_the_form(
    operator: Client, acme: TenantRef, changes: dict[str, str], complaint: str
) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    shown = page(operator.post(f"{base(acme)}resources/add/", form(**changes)))
    assert complaint in shown
    assert 'name="config"' in shown
    assert counts(acme) == (0, 1)


def test_what_is_in_use_stays(operator: Client, acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    content = {"resources": {"db": {"type": "database", "definition": "billing-db"}}}
    with tenant_scope(acme):
        BlueprintVersion.objects.create(
            blueprint=Blueprint.objects.create(name="order"),
            number=1,
            content=content,
            content_hash="1",
        )
    shown = page(operator.post(f"{base(acme)}resources/billing-db/delete/"))
    assert "used by the blueprint &#x27;order&#x27;" in shown
    shown = page(operator.post(f"{base(acme)}secrets/billing/delete/"))
    assert "used by the definition &#x27;billing-db&#x27;" in shown
    assert counts(acme) == (1, 1)


def test_a_secret_is_deleted(operator: Client, acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        put_secret(tenant, "billing", VALUE, actor="tests")
    assert "was deleted" in page(operator.post(f"{base(acme)}secrets/billing/delete/", follow=True))
    assert (counts(acme), counts(globex)) == ((0, 0), (0, 1))
    assert "There is no secret" in page(operator.post(f"{base(acme)}secrets/billing/delete/"))


def test_what_there_is_not_is_not_found(
    operator: Client, acme: TenantRef, globex: TenantRef
) -> None:
    define(globex)
    assert operator.get(f"{base(acme)}resources/billing-db/change/").status_code == 404
    assert operator.get("/admin/tenants/tenant/999999/resources/").status_code == 404


PAGES = {
    "resources/": "view_resourcedefinition",
    "resources/add/": "add_resourcedefinition",
    "resources/billing-db/change/": "change_resourcedefinition",
    "resources/billing-db/delete/": "delete_resourcedefinition",
    "secrets/set/": "change_secret",
    "secrets/billing/delete/": "delete_secret",
}


@pytest.mark.parametrize("right", PAGES.values())
def test_each_page_needs_its_own_right(acme: TenantRef, globex: TenantRef, right: str) -> None:
    define(acme)
    somebody = clerk(right)
    for path, needed in PAGES.items():
        expected = 200 if needed == right else 403
        assert somebody.get(base(acme) + path).status_code == expected, path
        if needed != right and path != "resources/":
            assert somebody.post(base(acme) + path, form()).status_code == 403
    assert counts(acme) == (1, 1)


def test_no_link_where_there_is_no_right(acme: TenantRef, globex: TenantRef) -> None:
    shown = page(clerk("view_tenant").get(f"{base(acme)}change/"))
    assert "resources/" not in shown


def test_members_and_strangers_do_not_come_in(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    for path in PAGES:
        assert member(acme, Role.ADMIN).get(base(acme) + path).status_code == 404
        assert staff_less().get(base(acme) + path).status_code == 302
        assert visitor().get(base(acme) + path).status_code == 302
        assert visitor(host_of(acme)).get(base(acme) + path).status_code == 404
        assert program(acme, role=Role.ADMIN).get(base(acme) + path).status_code in {302, 403, 404}


def staff_less() -> Client:
    """Somebody who is signed in at the platform's host and runs nothing of it."""
    with platform_scope():
        user, _ = User.objects.get_or_create(username="nobody")
    client = visitor()
    client.force_login(user)
    return client


def test_a_form_without_its_token_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    with platform_scope():
        user = User.objects.create(username="operator", is_staff=True, is_superuser=True)
    client = visitor(enforce_csrf_checks=True)
    client.force_login(user)
    answer = client.post(f"{base(acme)}secrets/set/", {"name": "billing", "value": VALUE})
    assert answer.status_code == 403
    assert counts(acme) == (0, 0)
