"""`isolane blueprints` and `isolane executions`, of one tenant beside another, without a worker."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone

from executions.models import Blueprint, Execution, Step
from executions.placement.models import Ticket
from foundation.errors import InvalidInput, NotFound
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.api_keys import create_api_key
from tests.integration.executions.api.runs import offer_nodes
from tests.integration.orchestrator.cli.conftest import Isolane

ORDER = str(Path(__file__).parents[4] / "examples" / "order.yaml")


@pytest.fixture
def pushed(isolane: Isolane, broker: "redis.Redis", acme: TenantRef, globex: TenantRef) -> None:
    """The example's blueprint in both tenants."""
    offer_nodes()
    for tenant in ("acme", "globex"):
        assert isolane("blueprints", "push", ORDER, "--tenant", tenant).exit_code == 0


def submit(isolane: Isolane, tenant: str, *options: str) -> str:
    submitted = isolane("executions", "submit", "order", "--tenant", tenant, *options)
    assert submitted.exit_code == 0
    return str(submitted.stdout.strip())


def key_of(tenant: TenantRef, *blueprints: str, role: Role = Role.OPERATOR) -> str:
    return create_api_key(
        tenant=tenant, name="cli", role=role, blueprints=blueprints or None, actor="tests"
    )


def test_a_blueprint_is_published_once_and_for_one_tenant(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    offer_nodes()
    push = ("blueprints", "push", ORDER, "--tenant", "acme")
    assert isolane(*push).output == "order@1 published for acme.\n"
    assert isolane(*push).output == "order@1 unchanged for acme.\n"
    assert " order " in isolane("blueprints", "list", "--tenant", "acme").output
    assert " order " not in isolane("blueprints", "list", "--tenant", "globex").output


def test_a_wrong_blueprint_is_refused(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: wrong\n")
    with pytest.raises(InvalidInput, match=r"wrong\.yaml:1: .*'steps' is a required property"):
        isolane("blueprints", "push", str(file), "--tenant", "acme")
    with tenant_scope(acme):
        assert not Blueprint.objects.exists()


def test_a_file_that_is_no_text_is_refused(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(InvalidInput, match=r"wrong\.yaml is not text in UTF-8"):
        isolane("blueprints", "push", str(file), "--tenant", "acme")


@pytest.mark.usefixtures("pushed")
def test_version_and_seed_may_be_said(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    options = ("--input", "order_id=7", "--version", "1", "--seed", "42")
    run = submit(isolane, "acme", *options)
    shown = json.loads(isolane("executions", "show", run, "--tenant", "acme").stdout)
    assert (shown["version"], shown["seed"]) == (1, 42)
    with pytest.raises(NotFound, match="'order@9'"):
        submit(isolane, "acme", "--input", "order_id=7", "--version", "9")
    with pytest.raises(InvalidInput, match="seed is"):
        submit(isolane, "acme", "--input", "order_id=7", "--seed", str(2**64))


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize(
    ("state", "outputs", "code", "said"),
    [
        ("succeeded", None, 0, ["succeeded", "{", '  "parcel": "ü"', "}"]),
        ("succeeded", {"total": "1"}, 0, ["succeeded", "{", '  "total": "1"', "}"]),
        ("failed", None, 1, ["failed TIMEOUT too \\u001b[1m slow"]),
    ],
)
def test_a_run_that_is_followed_shows_what_it_gives_back(
    isolane: Isolane, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch,
    state: str, outputs: Any, code: int, said: list[str],
) -> None:  # fmt: skip
    def run(**_: object) -> None:
        with tenant_scope(acme):
            Step.objects.filter(state="pending").update(state="running")
            Execution.objects.filter(state="queued").update(state="running")
            Step.objects.filter(path="fetch").update(state=state, output={"order": 7})
            Step.objects.filter(path="ship").update(state=state, output={"parcel": "ü"})
            Execution.objects.update(state=state, finished_at=timezone.now(), outputs=outputs)
            Execution.objects.filter(state="failed").update(
                code="TIMEOUT", message="too \x1b[1m slow"
            )

    monkeypatch.setattr("orchestrator.cli.commands.executions.admit_and_send", run)
    options = ("--tenant", "acme", "--input", "order_id=7", "--wait")
    followed = isolane("executions", "submit", "order", *options, "--api-key", key_of(acme))
    assert followed.exit_code == code
    assert followed.stdout.splitlines()[1:] == said
    unknown = isolane("executions", "submit", "order", *options)
    assert unknown.exit_code == code
    assert unknown.stdout.splitlines()[1:] == [state if state == "succeeded" else "failed TIMEOUT"]
    assert "ISOLANE_API_KEY" in unknown.stderr


@pytest.mark.usefixtures("pushed")
def test_a_run_is_submitted_and_shown(isolane: Isolane, acme: TenantRef, globex: TenantRef) -> None:
    run = submit(isolane, "acme", "--input", "order_id=7")
    show = ("executions", "show", run, "--tenant", "acme")
    shown = json.loads(isolane(*show, "--api-key", key_of(acme)).stdout)
    assert (shown["id"], shown["state"], shown["inputs"]) == (run, "queued", {"order_id": 7})
    assert [step["path"] for step in shown["steps"]] == ["fetch", "price", "charge", "ship"]
    assert shown["requested_by"].startswith("cli:")
    with platform_scope():
        assert [ticket.tenant_id for ticket in Ticket.objects.all()] == [acme.id]


@pytest.mark.usefixtures("pushed")
def test_a_tenants_list_holds_its_own_runs_newest_first(isolane: Isolane) -> None:
    runs = [submit(isolane, "acme", "--input", f"order_id={number}") for number in (1, 2, 3)]
    of_globex = submit(isolane, "globex", "--input", "order_id=4")

    def listed(*options: str) -> list[str]:
        output = isolane("executions", "list", *options).output
        return [word for word in output.split() if word.startswith("exec_")]

    assert listed("--tenant", "acme") == runs[::-1]
    assert listed("--tenant", "acme", "--limit", "1") == runs[-1:]
    assert listed("--tenant", "globex") == [of_globex]


@pytest.mark.usefixtures("pushed")
def test_a_run_that_waits_is_cancelled(
    isolane: Isolane, acme: TenantRef, globex: TenantRef
) -> None:
    run = submit(isolane, "acme", "--input", "order_id=7")
    kept = submit(isolane, "globex", "--input", "order_id=7")
    assert isolane("executions", "cancel", run, "--tenant", "acme").output == "Cancelled.\n"
    with tenant_scope(acme):
        ended = Execution.objects.get()
        assert ended.state == "cancelled"
        assert ended.message.startswith("Cancelled by cli:")
    with pytest.raises(NotFound, match="There is no execution"):
        isolane("executions", "cancel", kept, "--tenant", "acme")
    with tenant_scope(globex):
        assert Execution.objects.get().state == "queued"


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize("pair", ["order_id", "=7"])
def test_an_input_must_be_a_pair(isolane: Isolane, pair: str) -> None:
    refused = isolane("executions", "submit", "order", "--tenant", "acme", "--input", pair)
    assert refused.exit_code == 2
    assert "is not NAME=VALUE" in refused.output


@pytest.mark.usefixtures("pushed")
def test_an_input_that_is_no_json_is_text(isolane: Isolane, acme: TenantRef) -> None:
    with pytest.raises(InvalidInput, match="'seven' is not of type 'integer'"):
        isolane("executions", "submit", "order", "--tenant", "acme", "--input", "order_id=seven")


@pytest.mark.usefixtures("pushed")
def test_a_number_where_text_is_wanted_is_refused_with_the_way_to_type_text(
    isolane: Isolane, tmp_path: Path, acme: TenantRef, globex: TenantRef
) -> None:
    file = tmp_path / "card.yaml"
    file.write_text(
        "name: card\ninputs: {properties: {card: {type: string, sensitive: true}}}\n"
        "steps: [{key: ship, uses: shop.ship}]\n"
    )
    isolane("blueprints", "push", str(file), "--tenant", "acme")
    submit_card = ("executions", "submit", "card", "--tenant", "acme", "--input")
    with pytest.raises(InvalidInput, match=r"""write --input 'card="…"'$""") as refused:
        isolane(*submit_card, "card=4111111111111111")
    assert "4111" not in refused.value.detail
    assert isolane(*submit_card, 'card="4111111111111111"').exit_code == 0
