"""The resources that the demo shows, and its blueprint where there is no run cache."""

from dataclasses import asdict
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import isolane.nodes
from executions.blueprints.reading import parse
from executions.blueprints.validation.nodes import nodes_of
from executions.blueprints.validation.rules import check_document
from isolane.node import default_registry
from orchestrator import env
from orchestrator.cli.support import demo_resources
from orchestrator.cli.support.demo_resources import balance_line, ledger_table, without_cache
from orchestrator.embedded.errors import EmbeddedError


@pytest.fixture
def billing() -> dict[str, Any]:
    """The example."""
    text = (env.PROJECT_ROOT / "examples" / "billing.yaml").read_text(encoding="utf-8")
    return dict(parse(text))


def test_without_a_cache_the_rest_of_the_example_can_still_be_published(
    billing: dict[str, Any],
) -> None:
    assert isolane.nodes.__all__  # imported: the built-in nodes are registered
    document = without_cache(billing)
    check_document(document, nodes_of(asdict(n.description()) for n in default_registry))
    assert set(document["resources"]) == {"shop", "writer"}
    assert [step["key"] for step in document["steps"]] == ["invoice", "owed", "remind"]
    assert set(document["outputs"]) == {"reminder"}
    assert len(billing["steps"]) == 5  # the example itself is as it was


def test_the_ledger_is_shown_as_it_is() -> None:
    row = {"type": "cache.keys", "definition": "notes", "step": "", "ended": "", "duration_s": None}
    done = {"step": "[keep]", "ended": "disposed", "duration_s": 0.0256}
    ledger = {
        "execution_id": "exec_1",
        "tenant_id": "acme",
        "results": [
            {"resource_id": "exec:1:notes:", **row},
            {"resource_id": "cache_9", **row, **done},
        ],
        "balance": {"clean": False, "allocated": 2, "disposed": 1},
    }
    console = Console(width=200, record=True, file=StringIO())
    console.print(ledger_table(ledger))
    shown = console.export_text()
    assert "exec:1:notes: " in shown
    for line, words in (("exec:1:notes:", ["open"]), ("cache_9", ["[keep]", "disposed", "26"])):
        found = next(text for text in shown.splitlines() if line in text)
        assert [word for word in words if word not in found] == []
    assert balance_line(ledger) == "not clean: 2 allocated, 1 gone"


def test_a_clean_ledger_says_so() -> None:
    ledger = {"balance": {"clean": True, "allocated": 6, "disposed": 6}}
    assert balance_line(ledger) == "clean: 6 allocated, 6 gone"


def test_without_its_binaries_there_is_no_customer(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise EmbeddedError(f"package {name} is not installed")

    monkeypatch.setattr(demo_resources, "find_package", missing)
    stack: Any = None  # nothing of it is asked for
    assert demo_resources.start_customer(stack) is None
