"""Visitors of web, by the way they show who they are."""

from itertools import count
from typing import Any

from django.test import Client

from tenants.models import Membership, User
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope
from tenants.services.api_keys import create_api_key

BASE = "isolane.test"
_numbers = count(1)


def host_of(tenant: TenantRef) -> str:
    return f"{tenant.schema}.{BASE}"


def visitor(host: str = BASE, authorization: str = "", **options: Any) -> Client:
    """Somebody at an address, with an Authorization header or nothing."""
    headers = {"host": host} | ({"authorization": authorization} if authorization else {})
    return Client(headers=headers, **{"REMOTE_ADDR": _address(), **options})


def _address() -> str:
    """One that nobody had before: failures of one test must not make another wait."""
    number = next(_numbers)
    return f"198.18.{number // 256 % 256}.{number % 256}"


def program(
    tenant: TenantRef,
    *,
    host: str = BASE,
    role: Role = Role.OPERATOR,
    blueprints: list[str] | None = None,
) -> Client:
    """A program with an API key of the tenant, for all blueprints or some."""
    key = create_api_key(
        tenant=tenant, name="program", role=role, blueprints=blueprints, actor="tests"
    )
    return visitor(host, f"Bearer {key}")


def member(
    tenant: TenantRef, role: Role | None, *, blueprints: list[str] | None = None, **options: Any
) -> Client:
    """A person signed in at the tenant's own host; a member if a role is given."""
    with platform_scope():
        user = User.objects.create(username=f"someone-{User.objects.count()}")
        if role:
            Membership.objects.create(
                user=user, tenant_id=tenant.id, role=role, blueprints=blueprints
            )
    client = visitor(host_of(tenant), **options)
    client.force_login(user)
    return client


def staff(*, is_staff: bool = True, host: str = BASE) -> Client:
    """A person signed in at the platform's host; one who runs it, if staff."""
    with platform_scope():
        user = User.objects.create(username="operator", is_staff=is_staff, is_superuser=is_staff)
    client = visitor(host)
    client.force_login(user)
    return client


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Check that the answer is this problem, and return its body."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["code"] == code, body
    assert body["type"] == f"urn:isolane:problem:{code}"
    assert body["title"]
    assert "Traceback" not in body["detail"]
    return body
