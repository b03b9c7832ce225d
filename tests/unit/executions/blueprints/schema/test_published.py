"""The published schema: each field is described, shown by an example, and as strict as it says."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.schema.document import check
from executions.blueprints.schema.keywords import BoundedValidator
from executions.blueprints.schema.published import (
    DOCUMENT_SCHEMA,
    LIMITS,
    RECOVER,
    RESOURCE,
    RETRY,
    STEP,
)
from foundation.limit_bounds import LIMIT_BOUNDS

PARTS = {
    "": DOCUMENT_SCHEMA,
    "step.": STEP,
    "retry.": RETRY,
    "recover.": RECOVER,
    "limits.": LIMITS,
    "resource.": RESOURCE,
}
STEP_FIELDS = (
    "key uses with when on_failure retry timeout guarantee idempotency_key recover sensitive"
)
FIELDS = (
    "name description inputs outputs isolation express timeout budget limits labels resources steps"
)


def fields() -> Iterator[Any]:
    for prefix, schema in PARTS.items():
        for name, field in schema["properties"].items():
            yield pytest.param(field, id=f"{prefix}{name}")


def document(**fields: Any) -> dict[str, Any]:
    return {"name": "flow", "steps": [{"key": "a", "uses": "n"}], **fields}


def with_step(**fields: Any) -> dict[str, Any]:
    return {"name": "flow", "steps": [{"key": "a", "uses": "n", **fields}]}


def test_the_fields_are_those_of_the_design() -> None:
    Draft202012Validator.check_schema(DOCUMENT_SCHEMA)
    assert list(DOCUMENT_SCHEMA["properties"]) == FIELDS.split()
    assert list(STEP["properties"]) == STEP_FIELDS.split()
    assert list(LIMITS["properties"]) == list(LIMIT_BOUNDS)


@pytest.mark.parametrize("field", list(fields()))
def test_a_field_is_described_and_its_examples_and_default_fit(field: dict[str, Any]) -> None:
    assert field["description"].endswith(".")
    validator = BoundedValidator(field)
    for value in [*field["examples"], *([field["default"]] if "default" in field else [])]:
        validator.validate(value)


@pytest.mark.parametrize(
    "document",
    [
        document(
            budget={"tokens": 1, "eur": 0.5}, labels={"team/a": "b"}, express=True, timeout="7d"
        ),
        document(limits={}),
        document(limits={"cpu": 0.1, "ram_mb": 64, "processes": 8, "open_files": 32}),
        document(limits={"cpu": 1024, "ram_mb": 64.0, "disk_mb": 1, "output_kb": 1}),
        document(limits={"connections": 4096, "network_mb": 1, "idle_seconds": 86_400}),
        document(outputs={"any": [None, {"x": "${steps.a}"}]}, isolation="shared"),
        document(resources={"db": {"type": "database", "definition": "x", "scope": "step"}}),
        document(resources={"own": {"type": "acme.queue", "definition": "x"}}),
        document(inputs={"properties": {"card": {"type": "string", "sensitive": True}}}),
        document(inputs={"properties": {"sensitive": {"type": "string"}}}),
        document(inputs={"dependentRequired": {"sensitive": ["a"]}}),
        with_step(sensitive=True, guarantee="best_effort", on_failure="continue"),
        with_step(sensitive=["a", "b"], idempotency_key="x" * 200, timeout="24h"),
    ],
)
def test_what_fits(document: dict[str, Any]) -> None:
    assert check(document) is document


@pytest.mark.parametrize(
    ("document", "where", "expected"),
    [
        (document(budget={"Eur": 1}), "$.budget", "a lowercase letter"),
        (document(budget={"eur": 0}), "$.budget.eur", "minimum of 0"),
        (document(budget={"eur": "1"}), "$.budget.eur", "type 'number'"),
        (
            document(budget={f"k{n}": 1 for n in range(21)}),
            "$.budget",
            "it has 21 fields; at most 20",
        ),
        (
            document(labels={f"k{n}": "" for n in range(21)}),
            "$.labels",
            "it has 21 fields; at most 20",
        ),
        (document(limits={"cpu": 0.05}), "$.limits.cpu", "minimum of 0.1"),
        (document(limits={"cpu": "1"}), "$.limits.cpu", "type 'number'"),
        (document(limits={"ram_mb": 63}), "$.limits.ram_mb", "minimum of 64"),
        (document(limits={"ram_mb": 64.5}), "$.limits.ram_mb", "type 'integer'"),
        (document(limits={"processes": 7}), "$.limits.processes", "minimum of 8"),
        (document(limits={"processes": True}), "$.limits.processes", "type 'integer'"),
        (document(limits={"disk_mb": 0}), "$.limits.disk_mb", "minimum of 1"),
        (document(limits={"open_files": 31}), "$.limits.open_files", "minimum of 32"),
        (document(limits={"output_kb": 10_241}), "$.limits.output_kb", "maximum of 10240"),
        (document(limits={"connections": 4097}), "$.limits.connections", "maximum of 4096"),
        (document(limits={"network_mb": 0}), "$.limits.network_mb", "minimum of 1"),
        (document(limits={"idle_seconds": 0.5}), "$.limits.idle_seconds", "type 'integer'"),
        (document(limits={"ram_mb": None}), "$.limits.ram_mb", "type 'integer'"),
        (document(limits={"ram": 64}), "$.limits.ram", "did you mean 'ram_mb'?"),
        (document(limits=[64]), "$.limits", "type 'object'"),
        (document(labels={"a b": "x"}), "$.labels", "letters, digits"),
        (document(labels={"a": "x" * 201}), "$.labels.a", "it has 201 characters; at most 200"),
        (document(labels={"a": 1}), "$.labels.a", "type 'string'"),
        (
            document(isolation="vm"),
            "$.isolation",
            "not one of shared, process, docker, kubernetes.",
        ),
        (document(express="yes"), "$.express", "type 'boolean'"),
        (document(timeout="999ms"), "$.timeout", "between 1 s and 7 d"),
        (document(timeout="soon"), "$.timeout", "between 1 s and 7 d"),
        (document(timeout=5), "$.timeout", "5 is not a duration; write 5s"),
        (with_step(timeout=0.5), "$.steps[0].timeout", "write 0.5s"),
        (with_step(timeout=True), "$.steps[0].timeout", "such as 30s or 5m"),
        (document(resources={"db": {"type": "database"}}), "$.resources.db", "'definition'"),
        (
            document(resources={"db": {"type": "x", "definition": "x", "scop": "step"}}),
            "$.resources.db.scop",
            "did you mean 'scope'?",
        ),
        (
            document(inputs={"properties": {"a": {"sensitive": "yes"}}}),
            "$.inputs.properties.a.sensitive",
            "true or false",
        ),
        (
            document(inputs={"properties": {"a": {"properties": {"b": {"sensitive": True}}}}}),
            "$.inputs.properties.a.properties.b.sensitive",
            "at the top of inputs",
        ),
        (document(inputs={"sensitive": True}), "$.inputs.sensitive", "at the top of inputs"),
        (
            with_step(on_failure="bubble"),
            "$.steps[0].on_failure",
            "not one of abort, continue, retry",
        ),
        (with_step(on_failur="retry"), "$.steps[0].on_failur", "did you mean 'on_failure'?"),
        (with_step(retry={"attempts": 1}), "$.steps[0].retry.attempts", "minimum of 2"),
        (with_step(retry={"attempts": 21}), "$.steps[0].retry.attempts", "maximum of 20"),
        (with_step(retry={"then": "retry"}), "$.steps[0].retry.then", "not one of abort, continue"),
        (with_step(guarantee="always"), "$.steps[0].guarantee", "not one of at_least_once"),
        (
            with_step(idempotency_key="x" * 201),
            "$.steps[0].idempotency_key",
            "it has 201 characters; at most 200",
        ),
        (with_step(recover={"with": {}}), "$.steps[0].recover", "'uses' is a required"),
        (with_step(sensitive=[1]), "$.steps[0].sensitive[0]", "type 'string'"),
        (with_step(sensitive="x"), "$.steps[0].sensitive", "is not of type"),
    ],
)
def test_what_does_not(document: dict[str, Any], where: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        check(document)
    assert refused.value.field == where
    assert expected in refused.value.detail
