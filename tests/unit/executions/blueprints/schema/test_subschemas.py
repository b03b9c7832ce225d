"""executions.blueprints.schema.subschemas: a $ref leads to a schema inside, and on to another value."""

from typing import Any

import pytest

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.reading import read
from executions.blueprints.schema.subschemas import MAX_SCHEMAS, check_refs

TREE = {"properties": {"left": {"$ref": "#"}, "all": {"items": {"anyOf": [{"$ref": "#"}, True]}}}}


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {
            "$defs": {"a b/c~": {"type": "string"}},
            "properties": {"x": {"$ref": "#/$defs/a%20b~1c~0"}},
        },
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": True}, "$ref": "#/$defs/a"},
        {
            "$id": "https://example.com/x",
            "properties": {"x": {}},
            "not": {"$ref": "#/properties/x"},
        },
        {"allOf": [{"type": "object"}, {"$ref": "#/allOf/0"}]},
        {"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "nowhere"}},
    ],
)
def test_refs_that_can_be_followed(schema: dict[str, Any]) -> None:
    check_refs(schema, "$.inputs")


@pytest.mark.parametrize(
    ("schema", "path", "expected"),
    [
        ({"$ref": "https://example.com/x"}, "$ref", "leads out of the schema"),
        ({"items": {"$ref": "file:///etc/hostname"}}, "items.$ref", "leads out of the schema"),
        ({"$ref": "#name"}, "$ref", "write #/\\$defs/name"),
        ({"$ref": 5}, "$ref", "leads out of the schema"),
        (
            {"properties": {"x": {"$ref": "#/$defs/no"}}},
            "properties.x.$ref",
            "there is no schema at",
        ),
        ({"x-own": {}, "$ref": "#/x-own"}, "$ref", "there is no schema at"),
        ({"$ref": "#"}, "$ref", "leads back to itself"),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, "allOf[0].anyOf[0].$ref", "leads back to itself"),
        (
            {"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}},
            "$defs",
            "leads back to itself",
        ),
        (
            {"properties": {"x": {"$id": "https://e.com"}}},
            "properties.x.$id",
            "only the whole schema",
        ),
        ({"allOf": [{}] * MAX_SCHEMAS}, "", "more than 1000 schemas"),
    ],
)
def test_a_ref_that_cannot_be_followed_is_refused(
    schema: dict[str, Any], path: str, expected: str
) -> None:
    with pytest.raises(InvalidBlueprint, match=expected) as refused:
        check_refs(schema, "$.inputs")
    field = refused.value.field or ""
    assert field.startswith(f"$.inputs.{path}".rstrip("."))
    assert refused.value.detail.startswith(field)


def test_it_is_refused_with_its_line() -> None:
    text = "name: f\nsteps: [{key: a, uses: n}]\ninputs:\n  properties:\n    x:\n      $ref: '#/$defs/no'\n"
    with pytest.raises(InvalidBlueprint, match=r"^line 6: \$\.inputs\.properties\.x\.\$ref"):
        read(text)


def test_long_names_do_not_multiply() -> None:
    inner: dict[str, Any] = {"properties": {f"n{number}": {} for number in range(900)}}
    check_refs({"properties": {"k" * 200_000: inner}}, "$.inputs")
