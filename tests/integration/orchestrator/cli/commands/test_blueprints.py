"""`isolane blueprints validate|show|diff` and `isolane nodes`, of one tenant beside another."""

import json
from pathlib import Path

import pytest
import yaml

from executions.models import Blueprint
from foundation.errors import Forbidden, InvalidInput, NotFound, Unauthenticated, Unavailable
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import offer_nodes
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.orchestrator.cli.test_runs import key_of

SOURCE = "name: parcel\nsteps:\n  - key: ship\n    uses: shop.ship\n"


@pytest.fixture
def file(tmp_path: Path, acme: TenantRef, globex: TenantRef) -> Path:
    """A blueprint's file."""
    found = tmp_path / "parcel.yaml"
    found.write_text(SOURCE)
    return found


def push(isolane: Isolane, file: Path, tenant: str, more: str = "") -> None:
    file.write_text(SOURCE + more)
    assert isolane("blueprints", "push", str(file), "--tenant", tenant).exit_code == 0


def test_a_file_is_checked_and_nothing_stored(
    isolane: Isolane, file: Path, acme: TenantRef
) -> None:
    offer_nodes()
    checked = isolane("blueprints", "validate", str(file))
    assert (checked.exit_code, checked.output) == (0, "parcel fits.\n")
    with tenant_scope(acme):
        assert not Blueprint.objects.exists()


def test_a_check_says_what_publishing_would_do(isolane: Isolane, file: Path) -> None:
    offer_nodes()
    push(isolane, file, "globex")
    for tenant, outlook in (
        ("acme", "For acme it would become parcel@1."),
        ("globex", "globex has it as parcel@1."),
    ):
        checked = isolane("blueprints", "validate", str(file), "--tenant", tenant)
        assert checked.output == f"parcel fits. {outlook}\n"


def test_without_a_worker_a_check_says_what_it_left_out(isolane: Isolane, file: Path) -> None:
    checked = isolane("blueprints", "validate", str(file))
    assert checked.stdout == "parcel fits.\n"
    assert "were not checked" in checked.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("shop.ship", "shop.shop"), r"parcel\.yaml:4: \$\.steps\[0\]\.uses: there is no node"),
        (("key: ship", "key: [ship"), r"parcel\.yaml:4: is not YAML"),
        (("name: parcel", "name: 7"), r"parcel\.yaml:1: \$\.name"),
    ],
)
@pytest.mark.parametrize("command", [("validate",), ("push", "--tenant", "acme")])
def test_a_refusal_begins_with_file_and_line(
    isolane: Isolane, file: Path, command: tuple[str, ...], change: tuple[str, str], said: str
) -> None:
    offer_nodes()
    file.write_text(SOURCE.replace(*change))
    with pytest.raises(InvalidInput, match=said):
        isolane("blueprints", *command, str(file))


def test_versions_are_shown_and_compared(isolane: Isolane, file: Path) -> None:
    push(isolane, file, "acme")
    push(isolane, file, "acme", "    timeout: 5s\n")
    push(isolane, file, "globex")
    show = ("blueprints", "show", "parcel", "--tenant", "acme")
    assert yaml.safe_load(isolane(*show).output)["steps"][0]["timeout"] == "5s"
    assert isolane(*show, "--version", "1").output == isolane(*show[:-1], "globex").output
    assert json.loads(isolane(*show, "--json").output)["name"] == "parcel"
    diff = ("blueprints", "diff", "parcel", "1", "2", "--tenant")
    assert "+  timeout: 5s\n" in isolane(*diff, "acme").output
    with pytest.raises(NotFound, match="'parcel@2'"):
        isolane(*diff, "globex")
    listed = isolane("blueprints", "list", "--tenant", "acme").output
    assert "│ parcel    │ 2      │ 2        │" in listed


def test_a_key_acts_with_its_own_rights(
    isolane: Isolane, file: Path, acme: TenantRef, globex: TenantRef
) -> None:
    offer_nodes()
    push(isolane, file, "acme")
    operator = ("--api-key", key_of(acme))
    author = ("--api-key", key_of(acme, role=Role.AUTHOR))
    file.write_text(SOURCE + "    timeout: 5s\n")
    for command in (("push", "--tenant", "acme"), ("validate", "--tenant", "acme"), ("validate",)):
        with pytest.raises(Forbidden, match="lacks blueprint:edit on blueprint 'parcel'"):
            isolane("blueprints", *command, str(file), *operator)
        assert isolane("blueprints", *command, str(file), *author).exit_code == 0
    for looking in (("list",), ("show", "parcel"), ("diff", "parcel", "1", "2")):
        assert isolane("blueprints", *looking, "--tenant", "acme", *operator).exit_code == 0


def test_a_key_of_another_tenant_or_of_nobody_is_refused(
    isolane: Isolane, file: Path, acme: TenantRef, globex: TenantRef
) -> None:
    offer_nodes()
    push(isolane, file, "acme")
    foreign = ("--tenant", "acme", "--api-key", key_of(globex, role=Role.ADMIN))
    for command in (
        ("push", str(file)),
        ("validate", str(file)),
        ("list",),
        ("show", "parcel"),
        ("diff", "parcel", "1", "1"),
    ):
        with pytest.raises(Unauthenticated, match="not one of tenant 'acme'"):
            isolane("blueprints", *command, *foreign)
    for asked in (
        ("blueprints", "validate", str(file)),
        ("nodes", "list"),
        ("nodes", "show", "x"),
    ):
        with pytest.raises(Unauthenticated, match="not valid"):
            isolane(*asked, "--api-key", "isl_nonsense")
    assert isolane("nodes", "list", "--api-key", key_of(globex, role=Role.VIEWER)).exit_code == 0


def test_a_key_for_other_blueprints_finds_nothing(
    isolane: Isolane, file: Path, acme: TenantRef, globex: TenantRef
) -> None:
    push(isolane, file, "acme")
    limited = ("--tenant", "acme", "--api-key", key_of(acme, "payroll", role=Role.AUTHOR))
    for command in (("show", "parcel"), ("diff", "parcel", "1", "1")):
        with pytest.raises(NotFound, match="There is no blueprint 'parcel'"):
            isolane("blueprints", *command, *limited)
    assert "parcel" not in isolane("blueprints", "list", *limited).output
    with pytest.raises(Forbidden, match="lacks blueprint:edit on blueprint 'parcel'"):
        isolane("blueprints", "push", str(file), *limited)


def test_nodes_are_listed_and_shown(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    with pytest.raises(Unavailable, match="No worker has started yet"):
        isolane("nodes", "list")
    offer_nodes()
    listed = isolane("nodes", "list").output
    assert "shop.charge" in listed
    assert "idempotent, deterministic" in listed
    assert isolane("nodes", "show", "shop.ship").output.startswith("shop.ship: no summary\n")
    assert json.loads(isolane("nodes", "show", "shop.ship", "--json").output)["idempotent"] is True
    with pytest.raises(NotFound, match=r"did you mean 'shop\.ship'"):
        isolane("nodes", "show", "shop.shop")
