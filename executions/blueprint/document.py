"""A blueprint's document: its schema, and whether a document fits it. Pure."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import best_match

from executions.blueprint.errors import InvalidBlueprint, shown
from executions.blueprint.inputs import check_inputs_schema
from executions.blueprint.keywords import BoundedValidator
from executions.blueprint.plan import plan

KEY = "^[a-z][a-z0-9_-]{0,62}$"

DOCUMENT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Blueprint",
    "type": "object",
    "required": ["name", "steps"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,99}$"},
        "description": {"type": "string"},
        "inputs": {"type": "object", "description": "A JSON Schema for the inputs."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": {
                "type": "object",
                "required": ["key", "uses"],
                "additionalProperties": False,
                "properties": {
                    "key": {"type": "string", "pattern": KEY},
                    "uses": {"type": "string", "minLength": 1, "maxLength": 200},
                    "with": {"type": "object"},
                    "timeout": {
                        "type": "string",
                        "description": "Such as 500ms, 30s, 5m or 1h; between 10 ms and 24 h.",
                    },
                },
            },
        },
    },
}
# With Python's re, $ would match before a newline at the end, too; with RE2 it does not.
_DOCUMENT_VALIDATOR = BoundedValidator(DOCUMENT_SCHEMA)


def check(document: Any) -> dict[str, Any]:
    """Refuse a document that does not fit the schema, with the path of what does not."""
    if error := best_match(_DOCUMENT_VALIDATOR.iter_errors(document)):
        where = shown(error.json_path)
        raise InvalidBlueprint(f"{where}: {shown(error.message)}", field=where)
    checked: dict[str, Any] = document
    check_inputs_schema(checked.get("inputs", {}))
    keys = [step["key"] for step in checked["steps"]]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidBlueprint(
                f"$.steps: the key {key!r} is used twice; keys are unique.", field="$.steps"
            )
    plan(checked)
    return checked


def content_hash(document: Mapping[str, Any]) -> str:
    """The same content has the same hash, whatever the order of its keys."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
