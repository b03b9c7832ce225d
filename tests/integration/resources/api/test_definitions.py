"""Definitions over HTTP, each tenant for itself."""

from typing import Any

import pytest
from django.test import Client

from executions.models import Blueprint, BlueprintVersion
from resources.services.secrets import put_secret
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.resources.definitions import DATABASE, VALUE, audited, define
from tests.integration.tenants.web import host_of, member, problem, program, visitor

RESOURCES = "/api/v1/resources"
BODY = {"type": "database", "config": DATABASE, "secrets": {"password": "billing"}}


@pytest.fixture
def author(acme: TenantRef, globex: TenantRef) -> Client:
    for tenant in (acme, globex):
        put_secret(tenant, "billing", VALUE, actor="tests")
    return program(acme, role=Role.ADMIN)


def post(client: Client, **changes: Any) -> Any:
    body = {"name": "billing-db", **BODY, **changes}
    return client.post(RESOURCES, body, content_type="application/json")


def put(client: Client, name: str = "billing-db", **changes: Any) -> Any:
    return client.put(f"{RESOURCES}/{name}", {**BODY, **changes}, content_type="application/json")


def names(client: Client, query: str = "") -> list[str]:
    return [found["name"] for found in client.get(RESOURCES + query).json()["results"]]


def test_a_definition_is_made_read_changed_and_deleted(
    author: Client, acme: TenantRef, globex: TenantRef
) -> None:
    made = post(author, scope="execution")
    assert made.status_code == 201
    assert made["Location"] == f"{RESOURCES}/billing-db"
    shown = author.get(made["Location"]).json()
    assert shown == made.json()
    assert {name: shown[name] for name in BODY} == BODY
    assert (shown["name"], shown["scope"]) == ("billing-db", "execution")
    assert shown["created_by"].startswith("key:isl_")

    changed = put(author, config={**DATABASE, "port": 5433})
    assert changed.status_code == 200
    assert (changed.json()["config"]["port"], changed.json()["scope"]) == (5433, "step")
    assert names(author) == ["billing-db"]
    assert names(program(globex)) == []

    assert author.delete(made["Location"]).status_code == 204
    problem(author.get(made["Location"]), 404, "not_found")
    assert [action for action, *_ in audited(acme)] == [
        "secret.create",
        "resource.create",
        "resource.change",
        "resource.delete",
    ]


def test_a_member_at_the_tenants_host_may_do_the_same(
    author: Client, acme: TenantRef, globex: TenantRef
) -> None:
    assert post(member(acme, Role.ADMIN)).status_code == 201
    problem(post(program(acme, role=Role.ADMIN), name="billing-db"), 409, "definition_exists")
    assert names(member(globex, Role.VIEWER)) == []


def test_lists_have_pages(author: Client) -> None:
    for number in range(3):
        assert post(author, name=f"db-{number}").status_code == 201
    first = author.get(f"{RESOURCES}?page_size=2").json()
    assert [found["name"] for found in first["results"]] == ["db-2", "db-1"]
    rest = author.get(first["next"]).json()
    assert [found["name"] for found in rest["results"]] == ["db-0"]
    problem(author.get(f"{RESOURCES}?colour=red"), 400, "invalid_input")


# --- refusals
@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"name": "../x"}, "invalid_input", "name"),
        ({"name": "a'; drop table x; --"}, "invalid_input", "name"),
        ({"name": "a" * 64}, "invalid_input", "name"),
        ({"name": "münze"}, "invalid_input", "name"),
        ({"type": "databse"}, "invalid_input", "type"),
        ({"config": {"host": "db.example.com"}}, "invalid_input", "config"),
        ({"config": {**DATABASE, "port": "x"}}, "invalid_input", "config.port"),
        ({"config": {**DATABASE, "host": "localhost"}}, "address_refused", "config.host"),
        ({"config": {**DATABASE, "password": VALUE}}, "secret_in_config", "config.password"),
        ({"config": {**DATABASE, "user": "a\0"}}, "invalid_input", "config.user"),
        ({"secrets": {"password": "none"}}, "invalid_input", "secrets"),
        ({"secrets": {"token": "billing"}}, "invalid_input", "secrets"),
        ({"secrets": {"password": "vault:x"}}, "unknown_secret_scheme", "secrets.password"),
        ({"secrets": {"password": "P4ss word!"}}, "invalid_input", "secrets.password"),
        ({"secrets": ["billing"]}, "invalid_input", "secrets"),
        ({"config": "x"}, "invalid_input", "config"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field(
    author: Client, changes: dict[str, Any], code: str, field: str
) -> None:
    body = problem(post(author, **changes), 400, code)
    assert body["field"] == field
    assert VALUE not in str(body)
    assert "P4ss" not in str(body)
    assert names(author) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"colour": "red"}, "colour"), ({"scope": "forever"}, "scope"), ({"config": None}, "config")],
)
def test_a_body_that_does_not_fit_is_refused(
    author: Client, changes: dict[str, Any], field: str
) -> None:
    body = problem(post(author, **changes), 400, "invalid_input")
    assert body["errors"][0]["field"] == field


def test_another_tenants_looks_like_none(
    author: Client, acme: TenantRef, globex: TenantRef
) -> None:
    define(globex)
    for name in ("billing-db", "nothing"):
        answers = (
            author.get(f"{RESOURCES}/{name}"),
            put(author, name),
            author.delete(f"{RESOURCES}/{name}"),
        )
        for answer in answers:
            body = problem(answer, 404, "not_found")
            assert body["detail"] == f"There is no resource {name!r}."
    assert names(program(globex)) == ["billing-db"]


@pytest.mark.parametrize(
    "name", ["%2e%2e%2fx", "a%27%3B%20drop%20table%20x", "a" * 64, "m%C3%BCnze", "a%00"]
)
def test_what_is_no_name_is_not_found(author: Client, name: str) -> None:
    problem(author.get(f"{RESOURCES}/{name}"), 404, "not_found")
    problem(author.delete(f"{RESOURCES}/{name}"), 404, "not_found")
    assert put(author, name).status_code in {400, 404}


def test_one_in_use_is_not_deleted(author: Client, acme: TenantRef) -> None:
    post(author)
    declared = {"db": {"type": "database", "definition": "billing-db"}}
    with tenant_scope(acme):
        BlueprintVersion.objects.create(
            blueprint=Blueprint.objects.create(name="order"),
            number=1,
            content={"resources": declared},
            content_hash="1",
        )
    body = problem(author.delete(f"{RESOURCES}/billing-db"), 409, "definition_in_use")
    assert "blueprint 'order'" in body["detail"]
    assert names(author) == ["billing-db"]


# --- rights
def test_who_looks_does_not_change(author: Client, acme: TenantRef) -> None:
    post(author)
    for client in (program(acme, role=Role.OPERATOR), member(acme, Role.VIEWER)):
        assert names(client) == ["billing-db"]
        assert client.get(f"{RESOURCES}/billing-db").status_code == 200
        assert client.get("/api/v1/resource-types").status_code == 200
        for answer in (post(client), put(client), client.delete(f"{RESOURCES}/billing-db")):
            assert "resource:edit" in problem(answer, 403, "permission_denied")["detail"]


def test_who_is_limited_to_blueprints_changes_nothing_of_all(
    author: Client, acme: TenantRef
) -> None:
    post(author)
    limited = program(acme, role=Role.ADMIN, blueprints=["order"])
    assert names(limited) == ["billing-db"]
    for answer in (
        post(limited, name="other"),
        put(limited),
        limited.delete(f"{RESOURCES}/billing-db"),
    ):
        assert "limited to some blueprints" in problem(answer, 403, "permission_denied")["detail"]


def test_strangers_are_not_answered(author: Client, acme: TenantRef, globex: TenantRef) -> None:
    for client in (visitor(), visitor(host_of(acme)), member(acme, None)):
        problem(client.get(RESOURCES), 401, "not_authenticated")
        problem(post(client), 401, "not_authenticated")
