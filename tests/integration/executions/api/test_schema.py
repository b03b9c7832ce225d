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
    }


def test_it_says_how_to_authenticate_and_what_is_refused(document: dict[str, Any]) -> None:
    submit = document["paths"]["/api/v1/executions"]["post"]
    assert {name for way in submit["security"] for name in way} == {"apiKey", "session"}
    assert set(submit["responses"]) >= {"202", "400", "401", "403", "404", "409", "413", "503"}


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
            assert address.startswith("/static/"), address
            asset = client.get(address)
            asset.close()
            assert asset.status_code == 200, address
        assert "//cdn" not in page


@pytest.mark.parametrize("version", ["\0", "\r\nX: 1", "2"])
def test_there_is_one_version_whatever_is_asked_for(acme: TenantRef, version: str) -> None:
    plain, asked = (visitor().get("/api/schema/", query) for query in ({}, {"version": version}))
    assert asked.status_code == 200
    assert (asked.content, asked.headers) == (plain.content, plain.headers)
    assert visitor().get("/api/docs/", {"version": version}).status_code == 200
