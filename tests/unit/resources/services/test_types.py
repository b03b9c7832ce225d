"""The types that are installed, with the JSON Schema of what they take."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator

from isolane.shapes import Limits
from resources.services.types import config_schema, resource_type, resource_types


@dataclass(frozen=True, kw_only=True)
class Inner:
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outer:
    host: str
    mode: Literal["a", "b"] = "a"
    port: Annotated[int, Limits(minimum=1)] = 5432
    inner: Inner | None = None
    extra: dict[str, str] = field(default_factory=dict)


def test_a_dataclass_becomes_a_closed_object() -> None:
    schema = config_schema(Outer)
    assert schema == {
        "type": "object",
        "properties": {
            "host": {"type": "string"},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "port": {"type": "integer", "minimum": 1, "default": 5432},
            "inner": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
                        "required": ["names"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ],
                "default": None,
            },
            "extra": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
        },
        "required": ["host"],
        "additionalProperties": False,
    }


def test_every_built_in_type_is_described() -> None:
    found = {one.type: one for one in resource_types()}
    assert found.keys() >= {"database", "http_api", "model", "cache"}
    for one in found.values():
        Draft202012Validator.check_schema(one.config)
        assert one.summary
    assert set(found["database"].config["required"]) == {"host", "dbname", "user"}
    assert set(found["database"].secrets) == {"password"}
    assert found["cache"].secrets == {}


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({"host": "db", "dbname": "x", "user": "u"}, True),
        ({"host": "db", "dbname": "x", "user": "u", "mint": {"roles": ["app"]}}, True),
        ({"host": "db", "dbname": "x"}, False),
        ({"host": "db", "dbname": "x", "user": "u", "colour": "red"}, False),
    ],
)
def test_the_schema_says_what_fits(config: dict[str, Any], fits: bool) -> None:
    validator = Draft202012Validator(resource_type("database").config)
    assert validator.is_valid(config) is fits
