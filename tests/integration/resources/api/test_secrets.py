"""Secrets over HTTP: written, listed by name, deleted; no answer ever holds a value."""

from typing import Any

import pytest
from django.test import Client

from resources.services.secrets import put_secret, resolve
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.resources.definitions import VALUE, define
from tests.integration.tenants.web import member, problem, program

SECRETS = "/api/v1/secrets"


@pytest.fixture
def admin(acme: TenantRef, globex: TenantRef) -> Client:
    return program(acme, role=Role.ADMIN)


def put(client: Client, name: str = "billing", value: Any = VALUE, **more: Any) -> Any:
    body = {"value": value, **more}
    return client.put(f"{SECRETS}/{name}", body, content_type="application/json")


def listed(client: Client) -> list[tuple[str, int]]:
    results = client.get(SECRETS).json()["results"]
    return [(found["name"], found["version"]) for found in results]


def opened(tenant: TenantRef) -> str:
    with tenant_scope(tenant):
        return resolve(tenant.schema, {"x": "billing"})["x"]


def test_a_secret_is_set_replaced_and_deleted_and_never_told(
    admin: Client, acme: TenantRef, globex: TenantRef
) -> None:
    made, replaced = put(admin), put(admin, value="another-value ")
    assert (made.status_code, replaced.status_code) == (201, 200)
    assert opened(acme) == "another-value "
    assert set(made.json()) == {"name", "version", "created_at", "updated_at", "updated_by"}
    assert listed(admin) == [("billing", 2)]
    assert listed(program(globex)) == []
    for answer in (made, replaced, admin.get(SECRETS)):
        assert VALUE not in answer.content.decode()
        assert "another-value" not in answer.content.decode()
    assert admin.get(f"{SECRETS}/billing").status_code == 405
    assert admin.delete(f"{SECRETS}/billing").status_code == 204
    assert listed(admin) == []


@pytest.mark.parametrize("value", [None, "", "12345", 123456789, ["hunter2-hunter2"], "hunter2-\0"])
def test_what_cannot_be_a_secret_is_refused_without_a_word_of_it(admin: Client, value: Any) -> None:
    refused = put(admin, value=value)
    body = problem(refused, 400, "invalid_input")
    assert "value" in body["detail"]
    assert "hunter2" not in str(body)
    assert "123456789" not in str(body)
    assert listed(admin) == []


def test_an_unknown_field_is_refused(admin: Client) -> None:
    body = problem(put(admin, valeu="x"), 400, "invalid_input")
    assert body["errors"][0]["field"] == "valeu"
    assert VALUE not in str(body)


@pytest.mark.parametrize("name", ["a%27%3B%20drop%20table%20x", "a" * 64, "m%C3%BCnze", "..x", "A"])
def test_what_is_no_name_is_refused(admin: Client, name: str) -> None:
    assert "1 to 63 of a-z" in problem(put(admin, name), 400, "invalid_input")["detail"]
    problem(admin.delete(f"{SECRETS}/{name}"), 404, "not_found")


def test_another_tenants_looks_like_none(admin: Client, acme: TenantRef, globex: TenantRef) -> None:
    put_secret(globex, "billing", VALUE, actor="tests")
    for name in ("billing", "nothing"):
        body = problem(admin.delete(f"{SECRETS}/{name}"), 404, "not_found")
        assert body["detail"] == f"There is no secret {name!r}."
    assert put(admin, value="acme-value").status_code == 201  # the first of this name here
    assert (opened(acme), opened(globex)) == ("acme-value", VALUE)


def test_one_in_use_is_not_deleted(admin: Client, acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    body = problem(admin.delete(f"{SECRETS}/billing"), 409, "secret_in_use")
    assert "definition 'billing-db'" in body["detail"]


def test_only_admins_write(admin: Client, acme: TenantRef) -> None:
    put(admin)
    for client in (program(acme, role=Role.AUTHOR), member(acme, Role.VIEWER)):
        assert listed(client) == [("billing", 1)]
        for answer in (put(client), client.delete(f"{SECRETS}/billing")):
            assert "secret:edit" in problem(answer, 403, "permission_denied")["detail"]
    limited = program(acme, role=Role.ADMIN, blueprints=["order"])
    problem(put(limited), 403, "permission_denied")
    assert put(member(acme, Role.ADMIN)).status_code == 200
