"""Types of resources over HTTP."""

from tenants.roles import Role
from tenants.scope import TenantRef
from tests.integration.tenants.web import program


def test_types_are_described(acme: TenantRef, globex: TenantRef) -> None:
    client = program(acme, role=Role.VIEWER)
    found = {one["type"]: one for one in client.get("/api/v1/resource-types").json()["results"]}
    assert found.keys() >= {"cache", "database", "http_api", "model"}
    database = found["database"]
    assert database["config"]["properties"]["port"] == {"type": "integer", "default": 5432}
    assert database["config"]["additionalProperties"] is False
    assert set(database["secrets"]) == {"password"}
