"""Secrets: stored encrypted, replaced, resolved for the worker, never told otherwise."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from foundation.errors import InvalidInput, NotFound
from resources.models import Secret
from resources.resolvers.base import SecretUnavailable
from resources.selectors import all_secrets
from resources.services.definitions import create_definition, update_definition
from resources.services.secrets import SecretInUse, delete_secret, put_secret, resolve
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.statements import counted
from tests.integration.executions.threads import at_once
from tests.integration.resources.definitions import VALUE, audited, define, wanted

Server = psycopg.Connection[tuple[Any, ...]]


def names_of(tenant: TenantRef) -> list[tuple[str, int]]:
    with tenant_scope(tenant):
        return [(secret.name, secret.version) for secret in all_secrets()]


def opened(tenant: TenantRef, reference: str = "billing") -> str:
    with tenant_scope(tenant):
        return resolve(tenant.schema, {"password": reference})["password"]


# --- storing
def test_a_secret_is_made_replaced_and_each_tenants_own(acme: TenantRef, globex: TenantRef) -> None:
    assert put_secret(acme, "billing", VALUE, actor="tests").version == 1
    assert put_secret(globex, "billing", "globex-value", actor="tests").version == 1
    assert put_secret(acme, "billing", "acme-value-2", actor="key:isl_x").version == 2
    assert (opened(acme), opened(globex)) == ("acme-value-2", "globex-value")
    assert (names_of(acme), names_of(globex)) == ([("billing", 2)], [("billing", 1)])
    assert audited(acme) == [
        ("secret.create", "billing", "tests"),
        ("secret.replace", "billing", "key:isl_x"),
    ]


def test_a_value_is_nowhere_in_the_database(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    define(acme)
    put_secret(acme, "billing", VALUE, actor="tests")
    tables = ("acme.resources_secret", "acme.resources_resourcedefinition", "tenants_auditentry")
    rows = [str(row) for table in tables for row in superuser.execute(f"SELECT t FROM {table} t")]
    assert any("billing" in row for row in rows)
    assert not [row for row in rows if VALUE in row or VALUE.encode().hex() in row]


def test_those_who_set_it_at_once_each_make_a_version(acme: TenantRef, globex: TenantRef) -> None:
    def put(number: int) -> Any:
        return lambda: put_secret(acme, "billing", f"value-{number}", actor="tests").version

    versions = at_once([put(number) for number in range(4)])
    assert sorted(versions) == [1, 2, 3, 4]
    assert opened(acme) == f"value-{versions.index(4)}"


@pytest.mark.parametrize(
    "value", ["", "12345", "x" * 8193, "ü" * 4097, "hunter2\0", "\ud800" * 6, 7, None]
)
def test_what_cannot_be_a_secret_is_refused_without_a_word_of_it(
    acme: TenantRef, globex: TenantRef, value: Any
) -> None:
    with pytest.raises(InvalidInput, match="value cannot be a secret") as refused:
        put_secret(acme, "billing", value, actor="tests")
    assert refused.value.field == "value"
    assert not value or str(value) not in refused.value.detail
    assert names_of(acme) == []


@pytest.mark.parametrize("name", ["../x", "a'; drop table x; --", "a" * 64, "münze", "", "env:x"])
def test_what_is_no_name_is_refused(acme: TenantRef, globex: TenantRef, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not usable: 1 to 63"):
        put_secret(acme, name, VALUE, actor="tests")
    with pytest.raises(NotFound):
        delete_secret(acme, name, actor="tests")


# --- deleting
def test_a_secret_is_deleted_unless_a_definition_refers_to_it(
    acme: TenantRef, globex: TenantRef
) -> None:
    define(acme)
    put_secret(globex, "billing", VALUE, actor="tests")
    with pytest.raises(SecretInUse, match="used by the definition 'billing-db'; change") as refused:
        delete_secret(acme, "billing", actor="tests")
    assert refused.value.http_status == 409
    delete_secret(globex, "billing", actor="tests")
    update_definition(acme, wanted(secrets={"password": "file:billing"}), actor="tests")
    delete_secret(acme, "billing", actor="tests")
    assert (names_of(acme), names_of(globex)) == ([], [])
    assert audited(acme)[-1] == ("secret.delete", "billing", "tests")


def test_another_tenants_secret_is_not_found(acme: TenantRef, globex: TenantRef) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    with pytest.raises(NotFound, match="There is no secret 'billing'"):
        delete_secret(globex, "billing", actor="tests")
    assert names_of(acme) == [("billing", 1)]


def test_a_definition_and_the_deletion_of_its_secret_cannot_both_win(
    acme: TenantRef, globex: TenantRef
) -> None:
    def tried(work: Any) -> Any:
        def attempt() -> bool:
            try:
                work()
            except (InvalidInput, SecretInUse, NotFound):
                return False
            return True

        return attempt

    for number in range(5):
        put_secret(acme, "billing", VALUE, actor="tests")
        name = f"db-{number}"
        made, deleted = at_once(
            [
                tried(lambda name=name: create_definition(acme, wanted(name), actor="tests")),
                tried(lambda: delete_secret(acme, "billing", actor="tests")),
            ]
        )
        assert made is not deleted
        if made:
            assert names_of(acme) != []
            update_definition(acme, wanted(name, secrets={}), actor="tests")


# --- resolving
def test_stored_ones_are_read_with_one_query_and_others_by_their_resolver(
    acme: TenantRef, globex: TenantRef, superuser: Server, settings: Settings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("one", "two"):
        put_secret(acme, name, f"value-{name}", actor="tests")
    monkeypatch.setenv("ISOLANE_SECRET_ACME__BILLING", "value-env")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "billing").write_text("value-file\n")
    settings.SECRETS_DIR = str(tmp_path)
    references = {"a": "one", "b": "two", "c": "env:BILLING", "d": "file:billing", "e": "one"}
    with tenant_scope(acme), counted(superuser) as statements:
        values = resolve("acme", references)
    assert values == {
        "a": "value-one", "b": "value-two", "c": "value-env", "d": "value-file", "e": "value-one",
    }  # fmt: skip
    assert len([text for text in statements if "resources_secret" in text]) == 1
    with tenant_scope(globex), counted(superuser) as none:
        for reference in references.values():
            with pytest.raises(SecretUnavailable, match=reference.rpartition(":")[2]):
                resolve("globex", {"x": reference})
        assert resolve("globex", {}) == {}
    assert sum(count for text, count in none.items() if "resources_secret" in text) == 3


@pytest.mark.parametrize(("source", "name"), [("globex", "billing"), ("acme", "other")])
def test_a_row_copied_from_elsewhere_does_not_open(
    acme: TenantRef, globex: TenantRef, superuser: Server, source: str, name: str
) -> None:
    tenants = {"acme": acme, "globex": globex}
    put_secret(tenants[source], name, VALUE, actor="tests")
    put_secret(acme, "billing", "before-copy", actor="tests")
    superuser.execute(
        f"UPDATE acme.resources_secret SET sealed = (SELECT sealed FROM {source}.resources_secret"
        " WHERE name = %s) WHERE name = 'billing'",
        [name],
    )
    with pytest.raises(SecretUnavailable, match="'billing' cannot be decrypted") as refused:
        opened(acme)
    assert VALUE not in str(refused.value)


def test_a_secret_under_a_lost_key_is_named(
    acme: TenantRef, globex: TenantRef, settings: Settings
) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    from cryptography.fernet import Fernet

    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(
        SecretUnavailable, match="'billing' cannot be decrypted: No key in ENCRYPTION"
    ):
        opened(acme)


def test_a_tenant_cannot_read_anothers_table(acme: TenantRef, globex: TenantRef) -> None:
    from django.db import ProgrammingError, connection

    put_secret(acme, "billing", VALUE, actor="tests")
    with tenant_scope(globex):
        assert Secret.objects.count() == 0
        with pytest.raises(ProgrammingError, match="permission denied"):
            connection.cursor().execute("SELECT * FROM acme.resources_secret")
