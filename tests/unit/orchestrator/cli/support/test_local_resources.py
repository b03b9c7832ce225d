"""Resources of a local run: what the file says, and what it must not say."""

from pathlib import Path
from typing import Any

import click
import pytest

from executions.blueprints.errors import InvalidBlueprint
from orchestrator.cli.support.local_resources import local_grants

FLOW = {
    "name": "flow",
    "resources": {"db": {"type": "database", "definition": "billing", "scope": "execution"}},
    "steps": [{"key": "a", "uses": "sql.query"}],
}
BILLING = """
billing:
  type: database
  scope: execution
  config: {host: localhost, dbname: shop, user: reader}
  secrets: {password: env:SHOP_PASSWORD}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PASSWORD", "correct-horse")
    path = tmp_path / "resources.yaml"
    path.write_text(BILLING)
    return path


def test_a_definition_becomes_a_grant_with_its_secret_from_the_environment(file: Path) -> None:
    (grant,) = local_grants(FLOW, file)
    assert (grant.name, grant.definition, grant.scope) == ("db", "billing", "execution")
    assert grant.secrets == {"password": "correct-horse"}
    assert "correct-horse" not in repr(grant)


def test_a_blueprint_without_resources_needs_no_file() -> None:
    assert local_grants({"name": "flow", "steps": FLOW["steps"]}, None) == ()


def test_a_blueprint_with_resources_needs_one() -> None:
    with pytest.raises(
        click.ClickException, match=r"\(billing\): define them in a file, given with --resources"
    ):
        local_grants(FLOW, None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (BILLING, "[1]", "map names to definitions"),
        (BILLING, "billing: 1", "map names to definitions"),
        (BILLING, "a: {", "not YAML"),
        ("env:SHOP_PASSWORD", "correct-horse", "write env:NAME"),
        ("SHOP_PASSWORD", "NOT_THERE", "has no NOT_THERE"),
        ("user: reader", "user: reader, colour: red", "colour"),
        ("user: reader", "user: reader, mint: {roles: [a]}", "need a worker"),
        ("type: database", "type: 7", "type"),
        ("scope: execution", "scope: forever", "scope"),
    ],
)
def test_what_cannot_be_is_refused_with_the_file_and_the_way_out(
    file: Path, old: str, new: str, reason: str
) -> None:
    file.write_text(BILLING.replace(old, new))
    with pytest.raises(click.ClickException) as refused:
        local_grants(FLOW, file)
    assert reason in refused.value.message
    assert str(file) in refused.value.message
    assert "correct-horse" not in refused.value.message.replace(str(file), "")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("billing:", "other:", "no definition 'billing'"),
        ("type: database", "type: cache", "is of type 'cache'"),
        ("scope: execution", "scope: step", "not widen"),
    ],
)
def test_a_definition_must_fit_the_blueprint(file: Path, old: str, new: str, reason: str) -> None:
    file.write_text(BILLING.replace(old, new, 1))
    with pytest.raises(InvalidBlueprint) as refused:
        local_grants(FLOW, file)
    assert reason in refused.value.detail
    assert str(file) in refused.value.detail


def test_the_run_cache_needs_a_worker(file: Path) -> None:
    flow: dict[str, Any] = {**FLOW, "resources": {"db": {"type": "cache", "definition": "tmp"}}}
    file.write_text("tmp: {type: cache}")
    with pytest.raises(click.ClickException, match="need a worker"):
        local_grants(flow, file)
