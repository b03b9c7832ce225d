"""Definitions: each tenant's own, stored when they fit, deleted when nothing uses them."""

from typing import Any

import psycopg
import pytest

from executions.models import Blueprint, BlueprintVersion
from executions.services.resource_use import users_of
from foundation.errors import InvalidInput, NotFound
from resources.definition_ref import DefinitionRef
from resources.models import ResourceDefinition
from resources.selectors import definition, definitions
from resources.services.definitions import (
    DefinitionExists,
    DefinitionInUse,
    create_definition,
    delete_definition,
    unrouted,
    update_definition,
)
from resources.services.sealing import unseal
from resources.services.secrets import put_secret
from tenants.scope import TenantNotActive, TenantRef, tenant_scope
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.integration.executions.statements import counted
from tests.integration.resources.definitions import DATABASE, VALUE, audited, define, wanted

BAD_NAMES = ["../x", "a'; drop table resources_secret; --", "a" * 64, "münze", "", "a\0b"]


def names_of(tenant: TenantRef) -> list[str]:
    with tenant_scope(tenant):
        return list(ResourceDefinition.objects.order_by("name").values_list("name", flat=True))


def publish(tenant: TenantRef, name: str, *contents: dict[str, Any]) -> None:
    """Versions of a blueprint, stored as they are."""
    with tenant_scope(tenant):
        blueprint = Blueprint.objects.create(name=name)
        for number, content in enumerate(contents, start=1):
            BlueprintVersion.objects.create(
                blueprint=blueprint, number=number, content=content, content_hash=str(number)
            )


def declaring(definition: str) -> dict[str, Any]:
    return {"resources": {"db": {"type": "database", "definition": definition}}}


# --- making
def test_a_definition_is_made_for_one_tenant(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    with tenant_scope(acme):
        made = definition("billing-db")
    assert (made.type, made.config, made.secrets) == ("database", DATABASE, {"password": "billing"})
    assert (made.scope, made.created_by, made.updated_by) == ("step", "tests", "tests")
    assert names_of(globex) == []
    with tenant_scope(globex), pytest.raises(NotFound, match="no resource 'billing-db'"):
        definition("billing-db")
    assert audited(acme) == [
        ("secret.create", "billing", "tests"),
        ("resource.create", "billing-db", "tests"),
    ]
    assert audited(globex) == []


def test_both_tenants_may_use_the_same_name(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    define(globex, scope="execution")
    with tenant_scope(acme):
        assert definition("billing-db").scope == "step"
    with tenant_scope(globex):
        assert definition("billing-db").scope == "execution"


def test_a_name_is_taken_once(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    with pytest.raises(DefinitionExists, match="'billing-db' already") as refused:
        create_definition(acme, wanted(), actor="tests")
    assert refused.value.field == "name"
    assert names_of(acme) == ["billing-db"]


def test_a_secret_of_another_tenant_is_none(acme: TenantRef, globex: TenantRef) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    with pytest.raises(InvalidInput, match="there is no secret 'billing'; store it first"):
        create_definition(globex, wanted(), actor="tests")
    assert names_of(globex) == []
    assert audited(globex) == []


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_is_no_name_is_refused_or_not_found(
    acme: TenantRef, globex: TenantRef, name: str
) -> None:
    define(acme)
    with pytest.raises(InvalidInput, match="is not usable: 1 to 63"):
        create_definition(acme, wanted(name), actor="tests")
    with pytest.raises(InvalidInput, match="is not usable"):
        update_definition(acme, wanted(name), actor="tests")
    with pytest.raises(NotFound):
        delete_definition(acme, name, actor="tests", users_of=users_of)
    with tenant_scope(acme):
        assert definitions([name]) == {}
    assert names_of(acme) == ["billing-db"]


def test_a_suspended_tenant_defines_nothing(acme: TenantRef, globex: TenantRef) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    suspended = set_status(schema="acme", status=TenantStatus.SUSPENDED, actor="tests")
    with pytest.raises(TenantNotActive):
        create_definition(suspended, wanted(), actor="tests")
    set_status(schema="acme", status=TenantStatus.ACTIVE, actor="tests")
    assert names_of(acme) == []


# --- changing
def test_all_but_name_and_type_is_replaced(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    define(globex)
    config = {**DATABASE, "host": "other.example.com"}
    changed = wanted(config=config, secrets={"password": "env:BILLING"}, scope="execution")
    update_definition(acme, changed, actor="key:isl_x")
    with tenant_scope(acme):
        made = definition("billing-db")
    assert (made.config, made.secrets) == (config, {"password": "env:BILLING"})
    assert (made.scope, made.created_by, made.updated_by) == ("execution", "tests", "key:isl_x")
    with tenant_scope(globex):
        assert definition("billing-db").config == DATABASE
    assert audited(acme)[-1] == ("resource.change", "billing-db", "key:isl_x")


def test_a_type_never_changes(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    with pytest.raises(InvalidInput, match="which never changes") as refused:
        update_definition(acme, wanted(type="cache", config={}, secrets={}), actor="tests")
    assert refused.value.field == "type"


def test_another_tenants_is_neither_changed_nor_deleted(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    put_secret(globex, "billing", VALUE, actor="tests")
    with pytest.raises(NotFound):
        update_definition(globex, wanted(scope="execution"), actor="tests")
    with pytest.raises(NotFound):
        delete_definition(globex, "billing-db", actor="tests", users_of=users_of)
    with tenant_scope(acme):
        assert definition("billing-db").scope == "step"


# --- deleting
def test_a_definition_that_nothing_uses_is_deleted(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    define(globex)
    # Another tenant's use does not count, nor that of an older version, nor of another definition.
    publish(globex, "flow", declaring("billing-db"))
    publish(acme, "flow", declaring("billing-db"), {"resources": {}}, declaring("billing"))
    publish(acme, "plain", {"steps": []})
    # Trying it out is no use.
    publish(acme, "resource-check.billing-db", declaring("billing-db"))
    delete_definition(acme, "billing-db", actor="tests", users_of=users_of)
    assert (names_of(acme), names_of(globex)) == ([], ["billing-db"])
    assert audited(acme)[-1] == ("resource.delete", "billing-db", "tests")


def test_one_that_a_newest_version_uses_stays(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    publish(acme, "payroll", {}, declaring("billing-db"))
    publish(acme, "order", declaring("billing-db"))
    with tenant_scope(acme):
        assert users_of("billing-db") == ["order", "payroll"]
    with pytest.raises(DefinitionInUse, match="used by the blueprint 'order' and 1 more"):
        delete_definition(acme, "billing-db", actor="tests", users_of=users_of)
    assert names_of(acme) == ["billing-db"]
    with tenant_scope(globex):
        assert users_of("billing-db") == []


def test_a_name_cannot_break_out_of_the_question(acme: TenantRef, globex: TenantRef) -> None:
    publish(acme, "flow", declaring("billing-db"))
    with tenant_scope(acme):
        assert users_of('x" || @.definition == "billing-db') == []


def test_nobody_is_asked_unless_somebody_is_named(acme: TenantRef, globex: TenantRef) -> None:
    define(acme)
    with pytest.raises(NotImplementedError):
        delete_definition(acme, "billing-db", actor="tests", users_of=unrouted)
    assert names_of(acme) == ["billing-db"]


# --- for the worker
def test_the_worker_reads_many_with_one_query(
    acme: TenantRef, globex: TenantRef, superuser: psycopg.Connection[tuple[Any, ...]]
) -> None:
    define(acme)
    create_definition(
        acme, wanted("store", type="cache", config={}, secrets={}, scope="execution"), actor="tests"
    )
    define(globex, "theirs")
    with tenant_scope(acme), counted(superuser) as statements:
        found = definitions({"billing-db", "store", "theirs", "none"})
    sealed = found["billing-db"].sealed
    assert unseal("acme", "billing", sealed["billing"].encode()) == VALUE
    assert found == {
        "billing-db": DefinitionRef(
            name="billing-db",
            type="database",
            config=DATABASE,
            secrets={"password": "billing"},
            sealed=sealed,
            scope="step",
        ),
        "store": DefinitionRef(
            name="store", type="cache", config={}, secrets={}, sealed={}, scope="execution"
        ),
    }
    asked = [text for text in statements if "resources_" in text]
    assert len(asked) == 1
