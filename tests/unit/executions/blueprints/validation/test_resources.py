"""Declared resources against the steps and the definitions."""

from typing import Any

import pytest

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.plan import DeclaredResource
from executions.blueprints.validation.nodes import NodeInfo
from executions.blueprints.validation.resources import check_defined, mismatch, scope_of
from executions.blueprints.validation.rules import check_document
from isolane.protocol import ResourceScope
from resources.definition_ref import DefinitionRef


def defined(type_: str = "database", scope: ResourceScope = "execution") -> DefinitionRef:
    return DefinitionRef(name="billing", type=type_, scope=scope)


def declared(**fields: Any) -> DeclaredResource:
    return DeclaredResource(**{"name": "db", "type": "database", "definition": "billing", **fields})


@pytest.mark.parametrize(
    ("asked", "allowed", "counts"),
    [
        (None, "execution", "execution"),
        (None, "step", "step"),
        ("step", "execution", "step"),
        ("execution", "execution", "execution"),
        ("step", "step", "step"),
    ],
)
def test_the_narrower_scope_counts(
    asked: str | None, allowed: ResourceScope, counts: ResourceScope
) -> None:
    definition = defined(scope=allowed)
    assert mismatch(declared(scope=asked), definition) == ""
    assert scope_of(declared(scope=asked), definition) == counts


@pytest.mark.parametrize(
    ("resource", "definition", "reason"),
    [
        (declared(), None, "there is no definition 'billing'"),
        (declared(), defined("cache"), "of type 'cache', not 'database'"),
        (declared(scope="execution"), defined(scope="step"), "narrow a scope, not widen"),
        (declared(eager=True), defined(scope="step"), "cannot be eager"),
    ],
)
def test_what_does_not_fit_its_definition_is_refused(
    resource: DeclaredResource, definition: DefinitionRef | None, reason: str
) -> None:
    definitions = {"billing": definition} if definition else {}
    with pytest.raises(InvalidBlueprint, match=r"\$\.resources\.db: ") as refused:
        check_defined([resource], definitions)
    assert reason in str(refused.value)
    assert refused.value.field == "$.resources.db"


NODES = {
    "sql.query": NodeInfo(
        name="sql.query",
        parameters={"properties": {"resource": {"type": "string", "resource": "database"}}},
    ),
    "resources.check": NodeInfo(
        name="resources.check",
        parameters={"properties": {"resource": {"type": "string", "resource": ""}}},
    ),
}


def flow(uses: str, resource: Any, **declares: Any) -> dict[str, Any]:
    return {
        "name": "flow",
        "inputs": {"properties": {"which": {}}},
        "resources": {
            name: {"type": kind, "definition": "billing"} for name, kind in declares.items()
        },
        "steps": [{"key": "a", "uses": uses, "with": {"resource": resource}}],
    }


def test_a_node_may_use_what_is_declared() -> None:
    check_document(flow("sql.query", "db", db="database"), NODES)
    check_document(flow("resources.check", "db", db="cache"), NODES)
    check_document(flow("sql.query", "${inputs.which}", db="database"), NODES)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (flow("sql.query", "bd", db="database"), "declares no resource 'bd'; known are db."),
        (flow("sql.query", "db"), "declares no resource 'db'; known are none."),
        (flow("sql.query", "db", db="cache"), "is of type 'cache'; node sql.query needs"),
        (flow("resources.check", "x", db="cache"), "declares no resource 'x'"),
    ],
)
def test_a_node_may_not_use_what_is_not(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        check_document(document, NODES)
    assert reason in str(refused.value)
    assert refused.value.field == "$.steps[0].with.resource"


def test_what_a_step_opens_cannot_be_eager() -> None:
    document = flow("sql.query", "db", db="database")
    document["resources"]["db"] |= {"scope": "step", "eager": True}
    with pytest.raises(InvalidBlueprint, match=r"\$\.resources\.db\.eager"):
        check_document(document, NODES)
