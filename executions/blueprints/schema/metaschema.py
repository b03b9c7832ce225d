"""Validation of a JSON Schema within bounds: the meta-schema of draft 2020-12 as a single schema. Pure.

As published it consists of eight, and each of them visits every schema that is checked.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # without stubs
from referencing import Registry

from executions.blueprints.schema.keywords import BoundedValidator, bounded

_PUBLISHED: dict[str, Any] = Draft202012Validator.META_SCHEMA
_FETCHES_NOTHING: Registry[Any] = Registry()


def _parts() -> Iterator[Mapping[str, Any]]:
    folder = _PUBLISHED["$id"].rpartition("/")[0]
    for part in _PUBLISHED["allOf"]:
        yield REGISTRY.contents(f"{folder}/{part['$ref']}")
    yield _PUBLISHED


def _whole(value: Any) -> Any:
    """Return a part of the meta-schema with references to the whole."""
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if "$dynamicRef" in value:
        value = {**value, "$ref": "#"}
    elif isinstance(value.get("$ref"), str):
        value = {**value, "$ref": "#" + value["$ref"].partition("#")[2]}
    return {name: _whole(inner) for name, inner in value.items() if name != "$dynamicRef"}


def _merged(name: str) -> dict[str, Any]:
    return {key: _whole(value) for part in _parts() for key, value in part.get(name, {}).items()}


META = {
    "type": _PUBLISHED["type"],
    "properties": _merged("properties"),
    "$defs": _merged("$defs"),
}
# No formats: that of a pattern would be Python's, but RE2 compiles the patterns.
_VALIDATOR = BoundedValidator(META, registry=_FETCHES_NOTHING)


def schema_error(schema: Mapping[str, Any]) -> ValidationError | None:
    """Return the first error of a schema; None if it is valid."""
    with bounded():
        error: ValidationError | None = next(_VALIDATOR.iter_errors(schema), None)
    return error
