"""Publishing, checking and reading blueprints over HTTP, each tenant for itself."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from executions.blueprints.schema.published import DOCUMENT_SCHEMA
from executions.models import Blueprint
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import NODES
from tests.integration.tenants.web import member, problem, program, visitor

API = "/api/v1"
BLUEPRINTS = f"{API}/blueprints"
SOURCE = """\
name: parcel
steps:
  - key: ship
    uses: shop.ship
"""


def push(client: Client, source: Any = SOURCE, path: str = BLUEPRINTS) -> Any:
    return client.post(path, {"source": source}, content_type="application/json")


def names(client: Client, query: str = "") -> list[str]:
    return [found["name"] for found in client.get(BLUEPRINTS + query).json()["results"]]


def author(tenant: TenantRef) -> Client:
    return program(tenant, role=Role.AUTHOR)


# --- publishing
def test_a_source_is_published_once_and_for_one_tenant(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    client = author(acme)
    first, again = push(client), push(client)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first["Location"] == f"{BLUEPRINTS}/parcel/versions/1"
    assert client.get(first["Location"]).json() == first.json()
    assert first.json()["document"]["steps"] == [{"key": "ship", "uses": "shop.ship"}]
    assert first.json()["source"] == "name: parcel\nsteps:\n- key: ship\n  uses: shop.ship\n"
    assert names(client) == ["parcel", "order"]
    assert names(author(globex)) == ["order"]


def test_json_is_taken_too(order: str, acme: TenantRef, globex: TenantRef) -> None:
    document = {"name": "parcel", "steps": [{"key": "ship", "uses": "shop.ship"}]}
    assert push(author(acme), json.dumps(document)).json()["document"] == document


@pytest.mark.parametrize(
    ("change", "code", "field", "said"),
    [
        (("uses: shop.ship", "uses: shop.shop"), "invalid_blueprint", "$.steps[0].uses", "line 4: "),
        (("uses: shop.ship", "use: shop.ship"), "invalid_blueprint", "$.steps[0]", "line 3: "),
        (("uses: shop.ship", "uses: shop.ship\n    with: {x: '${nope.y}'}"), "bad_reference",
         "$.steps[0].with.x", "line 5: "),
        (("name: parcel", "name: Parcel"), "invalid_blueprint", "$.name", "line 1: "),
        (("key: ship", "key: [ship"), "invalid_blueprint", None, "is not YAML"),
    ],
)  # fmt: skip
def test_a_refusal_says_path_and_line(
    order: str, acme: TenantRef, globex: TenantRef, change: tuple[str, str], code: str,
    field: str | None, said: str,
) -> None:  # fmt: skip
    for path in (BLUEPRINTS, f"{BLUEPRINTS}/validate"):
        body = problem(push(author(acme), SOURCE.replace(*change), path), 400, code)
        assert said in body["detail"]
        [entry] = body["errors"]
        assert (entry["field"], entry["detail"]) == ("source", body["detail"])
        assert entry["line"] == int(re.findall(r"[Ll]ine (\d+)", body["detail"])[0])
        assert entry.get("path") == body.get("field")
        if field:
            assert body["field"].startswith(field)
    with tenant_scope(acme):
        assert not Blueprint.objects.filter(name="parcel").exists()


@pytest.mark.parametrize("source", [None, "", True, [], {}, "x" * 300_000, "a\0b"])
def test_what_is_no_text_is_refused(
    order: str, acme: TenantRef, globex: TenantRef, source: Any
) -> None:
    body = problem(push(author(acme), source), 400, "invalid_input")
    assert body["errors"][0]["field"] == "source"


def test_an_unknown_field_is_refused(order: str, acme: TenantRef, globex: TenantRef) -> None:
    sent = {"source": SOURCE, "colour": "red"}
    refused = author(acme).post(BLUEPRINTS, sent, content_type="application/json")
    assert problem(refused, 400, "invalid_input")["errors"][0]["field"] == "colour"


# --- checking
def test_a_check_stores_nothing(order: str, acme: TenantRef, globex: TenantRef) -> None:
    checked = push(author(acme), path=f"{BLUEPRINTS}/validate")
    assert checked.status_code == 200
    assert (checked.json()["name"], checked.json()["nodes_known"]) == ("parcel", True)
    assert names(program(acme)) == ["order"]


def test_a_check_is_for_those_who_may_publish(
    order: str, acme: TenantRef, globex: TenantRef
) -> None:
    limited = program(acme, role=Role.AUTHOR, blueprints=["order"])
    for client in (program(acme, role=Role.OPERATOR), member(acme, Role.VIEWER), limited):
        problem(push(client, path=f"{BLUEPRINTS}/validate"), 403, "permission_denied")


def test_before_the_first_worker_no_node_is_known(acme: TenantRef, globex: TenantRef) -> None:
    client = author(acme)
    checked = push(client, SOURCE.replace("shop.ship", "no.node"), f"{BLUEPRINTS}/validate")
    assert checked.json()["nodes_known"] is False
    assert client.get(f"{API}/nodes").json() == {"results": []}


# --- reading
def test_a_blueprint_with_its_versions(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = author(acme)
    push(client)
    push(client, SOURCE + "    timeout: 5s\n")
    push(author(globex))
    newest = client.get(f"{BLUEPRINTS}/parcel").json()
    assert newest["version"] == 2
    assert newest["document"]["steps"][0]["timeout"] == "5s"
    assert [found["version"] for found in newest["versions"]] == [2, 1]
    assert "document" not in newest["versions"][0]
    listed = {found["name"]: found for found in client.get(BLUEPRINTS).json()["results"]}
    assert (listed["parcel"]["version"], listed["parcel"]["versions_total"]) == (2, 2)
    assert [
        v["version"] for v in author(globex).get(f"{BLUEPRINTS}/parcel").json()["versions"]
    ] == [1]


def test_what_changed_between_versions(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = author(acme)
    push(client)
    push(client, SOURCE + "    timeout: 5s\n")
    changed = client.get(f"{BLUEPRINTS}/parcel/diff?old=1&new=2").json()
    assert (changed["name"], changed["old"], changed["new"]) == ("parcel", 1, 2)
    assert "+  timeout: 5s" in changed["diff"]
    assert client.get(f"{BLUEPRINTS}/parcel/diff?old=2&new=2").json()["diff"] == ""
    problem(client.get(f"{BLUEPRINTS}/parcel/diff?old=1&new=3"), 404, "not_found")
    problem(author(globex).get(f"{BLUEPRINTS}/parcel/diff?old=1&new=2"), 404, "not_found")
    for query in ("", "?old=1", "?old=0&new=1", "?old=x&new=1", "?old=1&new=2&colour=red"):
        problem(client.get(f"{BLUEPRINTS}/parcel/diff{query}"), 400, "invalid_input")


@pytest.mark.parametrize("name", ["nothing", "Order", "%00", "x" * 300, "order%0a", "..."])
def test_what_is_not_there(order: str, acme: TenantRef, globex: TenantRef, name: str) -> None:
    client = author(acme)
    for path in (name, f"{name}/versions/1", f"{name}/diff?old=1&new=2"):
        problem(client.get(f"{BLUEPRINTS}/{path}"), 404, "not_found")


@pytest.mark.parametrize("number", ["0", "2", str(2**31), str(2**70), "-1", "x"])
def test_a_version_that_is_not_there(
    order: str, acme: TenantRef, globex: TenantRef, number: str
) -> None:
    problem(author(acme).get(f"{BLUEPRINTS}/order/versions/{number}"), 404, "not_found")


def test_a_blueprint_may_be_called_validate(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = author(acme)
    problem(client.get(f"{BLUEPRINTS}/validate"), 404, "not_found")
    push(client, SOURCE.replace("parcel", "validate"))
    assert client.get(f"{BLUEPRINTS}/validate").json()["name"] == "validate"


@pytest.mark.parametrize("query", ["?page_size=0", "?page_size=x", "?colour=red"])
def test_a_wrong_query_is_refused(
    order: str, acme: TenantRef, globex: TenantRef, query: str
) -> None:
    problem(program(acme).get(BLUEPRINTS + query), 400, "invalid_input")


def test_pages_follow_each_other(order: str, acme: TenantRef, globex: TenantRef) -> None:
    client = author(acme)
    push(client)
    page = client.get(f"{BLUEPRINTS}?page_size=1").json()
    assert [found["name"] for found in page["results"]] == ["parcel"]
    assert [found["name"] for found in client.get(page["next"]).json()["results"]] == ["order"]
    problem(client.get(f"{BLUEPRINTS}?cursor=nonsense"), 404, "not_found")


# --- nodes and the schema
def test_the_catalogue_is_shown(order: str, acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        found = program(tenant, role=Role.VIEWER).get(f"{API}/nodes").json()["results"]
        assert [node["name"] for node in found] == sorted(NODES)
        assert found[0] == {
            "name": "shop.charge", "summary": "", "parameters": {}, "idempotent": True,
            "deterministic": True, "uses_key": False,
        }  # fmt: skip


def test_the_schema_is_the_published_one(acme: TenantRef, globex: TenantRef) -> None:
    assert member(acme, Role.VIEWER).get(f"{API}/blueprint-schema").json() == DOCUMENT_SCHEMA


# --- rights
def test_an_operator_publishes_nothing(order: str, acme: TenantRef, globex: TenantRef) -> None:
    for client in (program(acme), member(acme, Role.OPERATOR)):
        body = problem(push(client), 403, "permission_denied")
        assert "lacks blueprint:edit" in body["detail"]
    for path in (BLUEPRINTS, f"{BLUEPRINTS}/order", f"{API}/nodes", f"{API}/blueprint-schema"):
        problem(visitor().get(path), 401, "not_authenticated")
