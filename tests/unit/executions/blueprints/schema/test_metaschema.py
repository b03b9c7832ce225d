"""executions.blueprints.schema.metaschema: the same schemas are refused, at the same place, as by the published one."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from executions.blueprints.schema.metaschema import META, schema_error

WRONG = [5, "text", -1, [], {}, None, [5], {"x": 5}, True]


def published(schema: Any) -> list[Any] | None:
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        return list(error.absolute_path)
    return None


def ours(schema: Any) -> list[Any] | None:
    error = schema_error(schema)
    return list(error.absolute_path) if error else None


@pytest.mark.parametrize("keyword", META["properties"])
def test_every_keyword_is_checked_as_published(keyword: str) -> None:
    for value in WRONG:
        inner = {"properties": {"p": {keyword: value}}}
        assert ours(inner) == published(inner), value


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"x": {"allOf": []}}},
        {"items": {"if": {"not": {"minLength": "1"}}}},
        {"dependentSchemas": {"a": {"type": "texts"}}},
        {"type": ["string", "string"]},
        {"prefixItems": [{"pattern": 1}]},
    ],
)
def test_schemas_inside_schemas_are_checked(schema: Any) -> None:
    assert ours(schema) == published(schema) is not None
