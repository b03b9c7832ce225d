"""docs/blueprints.md: its tables are those of the schema, and its examples could run."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import isolane.nodes
from executions.blueprints.docs import PAGE, SCHEMA, filled, schema_text, write
from executions.blueprints.expressions.resolution import holds, resolve
from executions.blueprints.plan import PlannedStep, plan
from executions.blueprints.reading import read
from executions.blueprints.schema.inputs import check_inputs
from executions.blueprints.validation.nodes import nodes_of
from executions.blueprints.validation.rules import check_document
from isolane.node import default_registry

DOCS = Path(__file__).parents[4] / "docs"
TEXT = (DOCS / PAGE).read_text(encoding="utf-8")
EXAMPLES = {
    read(text).document["name"]: text for text in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
}
BUILT_IN = nodes_of(asdict(node.description()) for node in default_registry)
RUNS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("greeting", {"name": "Ada"}, {"text": "Hello Ada"}),
    ("greeting", {"name": "Ada", "friend": True}, {"text": "Hello Ada, nice to see you"}),
    ("charge", {"card": "4242"}, {}),
    ("thumbnails", {}, {}),
    ("rates", {"wanted": "EUR"}, {}),
    (
        "reminders",
        {"invoices": [{"id": 7, "open": True}, {"id": 8, "open": False}]},
        {"reminded": [7]},
    ),
    ("reminders", {"invoices": [], "dry_run": True}, {"reminded": []}),
    ("open-invoices", {"customer": "Ada"}, {"invoices": None}),  # no database is asked here
]


def test_the_files_are_up_to_date(tmp_path: Path) -> None:
    (tmp_path / PAGE).write_text(TEXT, encoding="utf-8")
    write(tmp_path)
    for name in (PAGE, SCHEMA):
        assert (tmp_path / name).read_text() == (DOCS / name).read_text(encoding="utf-8"), (
            f"{name} is old: run python -m executions.blueprints.docs"
        )


def test_a_stale_table_is_replaced_and_prose_kept() -> None:
    stale = "before\n<!-- fields: retry -->\nold\n<!-- end -->\nafter\n"
    page = filled(stale)
    assert "old" not in page
    assert (
        "| `attempts` | Maximum number of attempts, including the first. From 2 to 20. | `3` | `5` |"
        in page
    )
    assert (page[:7], page[-6:]) == ("before\n", "after\n")
    assert schema_text().endswith("}\n")


def test_every_example_is_run_here() -> None:
    assert isolane.nodes.__all__
    assert set(EXAMPLES) == {name for name, _, _ in RUNS}


@pytest.mark.parametrize(("name", "inputs", "outputs"), RUNS)
def test_an_example_could_run(name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    document = read(EXAMPLES[name]).document
    check_document(document, BUILT_IN)
    check_inputs(document, inputs)
    planned = plan(document)
    scope: dict[str, Any] = {"inputs": inputs, "steps": {}, "vars": {}}
    for step in planned.steps:
        if step.when is None or holds(step.when, scope):
            scope["steps"][step.path] = taken(step, scope)
    assert resolve(planned.outputs, scope) == outputs


def taken(step: PlannedStep, scope: dict[str, Any]) -> Any:
    """Return the output of the step's node, if it accepts the parameters."""
    node = default_registry.get(step.uses)
    assert node
    parameters = node.checked(resolve(step.parameters, scope))
    if step.uses == "data.set":
        scope["vars"].update(parameters["values"])
    return parameters.get("values", parameters)
