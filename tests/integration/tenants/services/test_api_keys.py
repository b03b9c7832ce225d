"""API keys: shown once, stored as a digest, gone at once when revoked."""

from datetime import timedelta

import psycopg
import pytest
from django.utils import timezone

from foundation.errors import InvalidInput, NotFound, Unauthenticated
from tenants.caller import Caller
from tenants.models import AuditEntry
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.api_keys import (
    HINT_LENGTH,
    caller_of_key,
    create_api_key,
    find_api_key,
    revoke_api_key,
)


def test_a_key_is_found_with_its_tenant_and_role(acme: TenantRef, globex: TenantRef) -> None:
    keys = {
        tenant.id: create_api_key(tenant=tenant, name="ci", role=Role.VIEWER, actor="tests")
        for tenant in (acme, globex)
    }
    for tenant_id, key in keys.items():
        found = find_api_key(key)
        assert found is not None
        assert (found.tenant_id, found.role) == (tenant_id, "viewer")


def test_the_key_itself_is_nowhere_in_the_database(
    acme: TenantRef, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    key = create_api_key(tenant=acme, name="ci", actor="tests")
    rows = superuser.execute("SELECT t::text FROM tenants_apikey t").fetchall()
    rows += superuser.execute("SELECT t::text FROM tenants_auditentry t").fetchall()
    assert not [row for row in rows if key[HINT_LENGTH:] in str(row)]
    assert any(key[:HINT_LENGTH] in str(row) for row in rows)


@pytest.mark.parametrize(
    ("expires_in", "valid"), [(timedelta(hours=1), True), (timedelta(0), False)]
)
def test_a_key_ends_when_it_expires(acme: TenantRef, expires_in: timedelta, valid: bool) -> None:
    key = create_api_key(
        tenant=acme, name="ci", expires_at=timezone.now() + expires_in, actor="tests"
    )
    assert (find_api_key(key) is not None) is valid


def test_what_was_never_a_key_is_not_found(acme: TenantRef) -> None:
    key = create_api_key(tenant=acme, name="ci", actor="tests")
    for sent in ("", "isl_", key[:-1], key.removeprefix("isl_"), key.upper(), f"isl_{key}"):
        assert find_api_key(sent) is None


def test_a_revoked_key_is_gone_and_others_are_not(acme: TenantRef, globex: TenantRef) -> None:
    key, kept = (create_api_key(tenant=acme, name="ci", actor="tests") for _ in range(2))
    revoke_api_key(tenant=acme, hint=key[:HINT_LENGTH], actor="alice")
    assert find_api_key(key) is None
    assert find_api_key(kept) is not None
    with platform_scope():
        entry = AuditEntry.objects.get(action="api_key.revoke")
    assert (entry.tenant_id, entry.actor, entry.subject) == (acme.id, "alice", key[:HINT_LENGTH])


def test_nobody_revokes_another_tenants_key(acme: TenantRef, globex: TenantRef) -> None:
    key = create_api_key(tenant=acme, name="ci", actor="tests")
    with pytest.raises(NotFound, match="Tenant 'globex' has no valid key"):
        revoke_api_key(tenant=globex, hint=key[:HINT_LENGTH], actor="mallory")
    assert find_api_key(key) is not None


def test_a_key_is_made_for_something(acme: TenantRef) -> None:
    with pytest.raises(InvalidInput, match="say what the key is for"):
        create_api_key(tenant=acme, name=" ", actor="tests")


def test_a_name_that_is_too_long_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    assert find_api_key(create_api_key(tenant=acme, name="x" * 100, actor="tests"))
    with pytest.raises(InvalidInput, match="name has 101 characters; use at most 100") as refused:
        create_api_key(tenant=acme, name="x" * 101, actor="tests")
    assert refused.value.field == "name"


# --- limited to some blueprints
def test_a_key_can_be_limited_to_blueprints(acme: TenantRef, globex: TenantRef) -> None:
    some = create_api_key(tenant=acme, name="some", blueprints=["b", "a", "b"], actor="tests")
    every = create_api_key(tenant=globex, name="all", actor="tests")
    assert [found.blueprints for key in (some, every) if (found := find_api_key(key))] == [
        ["a", "b"],
        None,
    ]
    with platform_scope():
        entries = AuditEntry.objects.filter(action="api_key.create").order_by("id")
        details = [(entry.tenant_id, entry.details) for entry in entries]
    assert details == [
        (acme.id, {"role": "operator", "blueprints": ["a", "b"]}),
        (globex.id, {"role": "operator", "blueprints": None}),
    ]


@pytest.mark.parametrize("wrong", [[], ["No"], ["b"] * 201])
def test_wrong_blueprints_make_no_key(acme: TenantRef, wrong: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_api_key(tenant=acme, name="ci", blueprints=wrong, actor="tests")
    assert refused.value.field == "blueprints"
    with platform_scope():
        assert not AuditEntry.objects.filter(action="api_key.create").exists()


# --- who calls with a key
def test_a_key_says_who_calls_also_from_inside_a_tenant(acme: TenantRef, globex: TenantRef) -> None:
    key = create_api_key(
        tenant=acme, name="ci", role=Role.VIEWER, blueprints=["billing"], actor="tests"
    )
    expected = Caller(
        tenant=acme,
        role=Role.VIEWER,
        name=f"key:{key[:HINT_LENGTH]}",
        blueprints=frozenset({"billing"}),
    )
    assert caller_of_key(key) == expected
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            assert caller_of_key(key) == expected


def test_a_key_that_is_not_valid_is_nobodys(acme: TenantRef, globex: TenantRef) -> None:
    revoked = create_api_key(tenant=acme, name="revoked", actor="tests")
    revoke_api_key(tenant=acme, hint=revoked[:HINT_LENGTH], actor="tests")
    expired = create_api_key(tenant=acme, name="old", expires_at=timezone.now(), actor="tests")
    for key in ("", "isl_unknown", revoked, expired):
        with pytest.raises(Unauthenticated, match="not valid: unknown, expired or revoked"):
            caller_of_key(key)
