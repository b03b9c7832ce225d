"""The OpenAPI document and its page."""

import re
from typing import Any

import pytest
import yaml
from openapi_spec_validator import OpenAPIV30SpecValidator, validate

from tenants.scope import TenantRef
from tests.integration.tenants.web import host_of, visitor


@pytest.fixture
def document(acme: TenantRef) -> dict[str, Any]:
    answer = visitor().get("/api/schema/")
    assert answer.status_code == 200
    loaded: dict[str, Any] = yaml.safe_load(answer.content)
    return loaded


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    validate(document, cls=OpenAPIV30SpecValidator)


def test_it_names_every_endpoint(document: dict[str, Any]) -> None:
    operations = {
        operation["operationId"]: (method, path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations == {
        "list_executions": ("get", "/api/v1/executions"),
        "submit_execution": ("post", "/api/v1/executions"),
        "get_execution": ("get", "/api/v1/executions/{id}"),
        "cancel_execution": ("post", "/api/v1/executions/{id}/cancel"),
        "replay_execution": ("post", "/api/v1/executions/{id}/replay"),
        "list_events": ("get", "/api/v1/executions/{id}/events"),
        "explain_execution": ("get", "/api/v1/executions/{id}/explanation"),
        "list_logs": ("get", "/api/v1/executions/{id}/logs"),
        "list_costs": ("get", "/api/v1/executions/{id}/costs"),
        "list_approvals": ("get", "/api/v1/approvals"),
        "get_approval": ("get", "/api/v1/executions/{id}/approvals/{number}"),
        "answer_approval": ("post", "/api/v1/executions/{id}/approvals/{number}/answer"),
        "list_blueprints": ("get", "/api/v1/blueprints"),
        "publish_blueprint": ("post", "/api/v1/blueprints"),
        "validate_blueprint": ("post", "/api/v1/blueprints/validate"),
        "get_blueprint": ("get", "/api/v1/blueprints/{name}"),
        "get_blueprint_version": ("get", "/api/v1/blueprints/{name}/versions/{number}"),
        "diff_blueprint": ("get", "/api/v1/blueprints/{name}/diff"),
        "get_levels": ("get", "/api/v1/levels"),
        "list_nodes": ("get", "/api/v1/nodes"),
        "get_blueprint_schema": ("get", "/api/v1/blueprint-schema"),
        "list_execution_resources": ("get", "/api/v1/executions/{id}/resources"),
        "list_unclean_executions": ("get", "/api/v1/executions/unclean"),
        "abandon_leftover": ("post", "/api/v1/executions/unclean/abandon"),
        "test_resource": ("post", "/api/v1/resources/{name}/test"),
        "list_resources": ("get", "/api/v1/resources"),
        "create_resource": ("post", "/api/v1/resources"),
        "get_resource": ("get", "/api/v1/resources/{name}"),
        "update_resource": ("put", "/api/v1/resources/{name}"),
        "delete_resource": ("delete", "/api/v1/resources/{name}"),
        "list_resource_types": ("get", "/api/v1/resource-types"),
        "list_secrets": ("get", "/api/v1/secrets"),
        "put_secret": ("put", "/api/v1/secrets/{name}"),
        "delete_secret": ("delete", "/api/v1/secrets/{name}"),
    }


def test_it_says_how_to_authenticate_and_what_is_refused(document: dict[str, Any]) -> None:
    submit = document["paths"]["/api/v1/executions"]["post"]
    assert {name for way in submit["security"] for name in way} == {"apiKey", "session"}
    assert [(p["in"], p["name"]) for p in submit["parameters"]] == [("header", "Idempotency-Key")]
    assert set(submit["responses"]) >= {
        "200",
        "202",
        "400",
        "401",
        "403",
        "404",
        "409",
        "413",
        "503",
    }


def test_an_error_of_a_problem_has_path_and_line(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    name = schemas["Problem"]["properties"]["errors"]["items"]["$ref"].rsplit("/", 1)[1]
    entry = schemas[name]
    assert set(entry["properties"]) == {"field", "detail", "path", "line"}
    assert entry["properties"]["line"]["type"] == "integer"
    assert entry["required"] == ["detail", "field"]


def test_the_value_of_a_secret_is_in_no_answer(document: dict[str, Any]) -> None:
    with_value = {
        name
        for name, schema in document["components"]["schemas"].items()
        if "value" in schema.get("properties", {})
    }
    assert len(with_value) == 1
    for methods in document["paths"].values():
        for operation in methods.values():
            assert not any(name in str(operation["responses"]) for name in with_value)


def test_the_list_is_described_as_pages(document: dict[str, Any]) -> None:
    answer = document["paths"]["/api/v1/executions"]["get"]["responses"]["200"]
    name = answer["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
    assert set(document["components"]["schemas"][name]["properties"]) == {
        "next",
        "previous",
        "results",
    }


def test_the_page_loads_nothing_from_elsewhere(acme: TenantRef, globex: TenantRef) -> None:
    for client in (visitor(), visitor(host_of(acme))):
        page = client.get("/api/docs/").content.decode()
        addresses = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)""", page)
        assert addresses
        for address in addresses:
            assert address.startswith(("/static/", "/api/docs/?script=")), address
            asset = client.get(address)
            asset.close()
            assert asset.status_code == 200, address
        assert "//cdn" not in page


@pytest.mark.parametrize("version", ["\0", "\r\nX: 1", "2"])
def test_there_is_one_version_whatever_is_asked_for(acme: TenantRef, version: str) -> None:
    plain, asked = (
        visitor().get("/api/schema/", query, headers={"x-request-id": "the-same"})
        for query in ({}, {"version": version})
    )
    assert asked.status_code == 200
    assert (asked.content, asked.headers) == (plain.content, plain.headers)
    assert visitor().get("/api/docs/", {"version": version}).status_code == 200
