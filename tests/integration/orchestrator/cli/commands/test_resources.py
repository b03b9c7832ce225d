"""`isolane resources`."""

import json
from pathlib import Path

import pytest
import yaml

from foundation.errors import Conflict, Forbidden, InvalidInput, NotFound
from resources.selectors import definition
from resources.services.secrets import put_secret
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tenants.services.api_keys import create_api_key
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.resources.definitions import DATABASE, VALUE, define

OPTIONS = (
    "--type", "database", "--config", "host=db.example.com", "--config", "port=5433", "--config", "dbname=billing",
    "--config", "user=reader", "--secret", "password=billing", "--scope", "execution",
)  # fmt: skip


def test_a_definition_is_made_listed_shown_changed_and_deleted(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    made = isolane("resources", "create", "billing-db", "--tenant", "acme", *OPTIONS)
    assert made.output == "Resource billing-db is defined for acme.\n"
    with tenant_scope(acme):
        found = definition("billing-db")
    assert found.config == {**DATABASE, "port": 5433}
    assert (found.scope, found.secrets) == ("execution", {"password": "billing"})
    assert found.created_by.startswith("cli:")

    listed = isolane("resources", "list", "--tenant", "acme").output
    assert "billing-db" in listed
    assert "password=billing" in listed
    assert "billing-db" not in isolane("resources", "list", "--tenant", "globex").output
    [line] = isolane("resources", "list", "--tenant", "acme", "--json").output.splitlines()
    assert json.loads(line)["config"]["port"] == 5433

    changed = isolane(
        "resources", "update", "billing-db", "--tenant", "acme", "--config", "port=5434"
    )
    assert changed.exit_code == 0
    shown = yaml.safe_load(isolane("resources", "show", "billing-db", "--tenant", "acme").output)
    assert shown == {
        "type": "database",
        "config": {**DATABASE, "port": 5434},
        "secrets": {"password": "billing"},
        "scope": "execution",
    }

    kept = isolane("resources", "delete", "billing-db", "--tenant", "acme", typed="n\n")
    assert kept.exit_code == 1
    gone = isolane("resources", "delete", "billing-db", "--tenant", "acme", "--yes")
    assert gone.output == "Resource billing-db of acme is deleted.\n"
    with pytest.raises(NotFound):
        isolane("resources", "show", "billing-db", "--tenant", "acme")


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_file_is_taken_and_options_go_before_it(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, tmp_path: Path, form: str
) -> None:
    put_secret(acme, "billing", VALUE, actor="tests")
    document = {"type": "database", "config": DATABASE, "secrets": {"password": "billing"}}
    file = tmp_path / f"billing.{form}"
    file.write_text(json.dumps(document) if form == "json" else yaml.safe_dump(document))
    isolane(
        "resources", "create", "billing-db", "--tenant", "acme", "--file", str(file),
        "--config", "port=5433",
    )  # fmt: skip
    with tenant_scope(acme):
        assert definition("billing-db").config == {**DATABASE, "port": 5433}
    # A file replaces all that was stored.
    isolane("resources", "update", "billing-db", "--tenant", "acme", "--file", str(file))
    with tenant_scope(acme):
        assert definition("billing-db").config == DATABASE


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[1]", "holds no object with type, config, secrets, scope"),
        ("a: [", "is neither YAML nor JSON"),
        ("type: cache\ncolour: red", "has a field 'colour'; known are type"),
        ("type: cache\nconfig: 7", "config is not an object"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(content)
    with pytest.raises(InvalidInput, match=reason):
        isolane("resources", "create", "store", "--tenant", "acme", "--file", str(file))


def test_wrong_options_are_refused(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    untyped = isolane("resources", "create", "store", "--tenant", "acme")
    assert (untyped.exit_code, "--type" in untyped.output) == (2, True)
    for option in ("--config", "--secret"):
        typed = isolane(
            "resources", "create", "store", "--tenant", "acme", "--type", "cache", option, VALUE
        )
        assert typed.exit_code == 2
        assert VALUE not in typed.output
    with pytest.raises(InvalidInput, match="is not usable: 1 to 63"):
        isolane("resources", "create", "../x", "--tenant", "acme", "--type", "cache")
    with pytest.raises(InvalidInput, match="known are: cache, database"):
        isolane("resources", "create", "store", "--tenant", "acme", "--type", "cahce")
    with pytest.raises(NotFound, match="no tenant 'initech'"):
        isolane("resources", "list", "--tenant", "initech")


def test_a_key_acts_with_its_rights_in_its_tenant(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    define(acme)
    define(globex)
    keys = {
        role: create_api_key(tenant=acme, name="k", role=role, actor="tests")
        for role in (Role.AUTHOR, Role.ADMIN)
    }
    listed = isolane("resources", "list", "--tenant", "acme", "--api-key", keys[Role.AUTHOR])
    assert "billing-db" in listed.output
    change = ("resources", "update", "billing-db", "--tenant", "acme", "--scope", "execution")
    with pytest.raises(Forbidden, match="lacks resource:edit"):
        isolane(*change, "--api-key", keys[Role.AUTHOR])
    isolane(*change, "--api-key", keys[Role.ADMIN])
    with tenant_scope(acme):
        assert definition("billing-db").updated_by.startswith("key:")
    with tenant_scope(globex):
        assert definition("billing-db").scope == "step"


def test_one_in_use_is_not_deleted(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    from executions.models import Blueprint, BlueprintVersion

    define(acme)
    content = {"resources": {"db": {"type": "database", "definition": "billing-db"}}}
    with tenant_scope(acme):
        BlueprintVersion.objects.create(
            blueprint=Blueprint.objects.create(name="order"),
            number=1,
            content=content,
            content_hash="1",
        )
    with pytest.raises(Conflict, match="used by the blueprint 'order'"):
        isolane("resources", "delete", "billing-db", "--tenant", "acme", "--yes")


def test_types_are_described(isolane: Isolane) -> None:
    shown = isolane("resources", "types").output
    assert all(name in shown for name in ("cache", "database", "http_api", "model", "port = 5432"))
    [line] = isolane("resources", "types", "database", "--json").output.splitlines()
    assert json.loads(line)["config"]["required"] == ["host", "dbname", "user"]
    with pytest.raises(InvalidInput, match="no type 'databse'; known are"):
        isolane("resources", "types", "databse")
