"""The schemas inside a JSON Schema, and the targets of its $refs: one of them, and never in a circle. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from executions.blueprints.errors import InvalidBlueprint, shown
from executions.blueprints.paths import child, item

MAX_SCHEMAS = 1000  # in one schema; checking each takes a quarter of a millisecond
# These hold one schema, several, or several by name.
_ONE = frozenset({
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
})  # fmt: skip
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
# These look at the same value as the schema they are in, so a path over them alone must end.
_SAME_VALUE = frozenset(
    {"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)

Pointer = tuple[str, ...]  # a JSON pointer as names; joined, long names would be repeated


@dataclass(frozen=True, kw_only=True, slots=True)
class _Schema:
    """One of the schemas."""

    content: Any
    path: str  # as errors name it
    same_value: list[Pointer] = field(default_factory=list)  # others that look at the value


def check_refs(schema: Mapping[str, Any], where: str) -> None:
    """Refuse a $ref that leads out of the schema, to no schema, or in a circle that never reaches another value."""
    schemas = _schemas(schema, where)
    for found in schemas.values():
        if isinstance(found.content, Mapping) and "$ref" in found.content:
            found.same_value.append(_target(found, schemas))
        if found.path != where and isinstance(found.content, Mapping) and "$id" in found.content:
            # It would change the target of a $ref below it.
            raise _unfit(child(found.path, "$id"), "only the whole schema can have an $id")
    try:
        TopologicalSorter({at: found.same_value for at, found in schemas.items()}).prepare()
    except CycleError as error:
        circle = [schemas[at] for at in error.args[1]]
        turning = next(found for found in circle if "$ref" in found.content)
        raise _unfit(
            child(turning.path, "$ref"),
            "it leads back to itself; put it below properties or items",
        ) from None


def _schemas(root: Any, where: str) -> dict[Pointer, _Schema]:
    schemas: dict[Pointer, _Schema] = {(): _Schema(content=root, path=where)}
    waiting: list[Pointer] = [()]
    while waiting:
        at = waiting.pop()
        outer = schemas[at]
        for names, content, path in _inside(outer):
            inner = (*at, *names)
            schemas[inner] = _Schema(content=content, path=path)
            waiting.append(inner)
            if names[0] in _SAME_VALUE:
                outer.same_value.append(inner)
            if len(schemas) > MAX_SCHEMAS:
                raise _unfit(where, f"it holds more than {MAX_SCHEMAS} schemas")
    return schemas


def _inside(schema: _Schema) -> Iterator[tuple[Pointer, Any, str]]:
    """Yield the schemas directly inside one: pointer, content and path."""
    if not isinstance(schema.content, Mapping):
        return
    for keyword, value in schema.content.items():
        path = child(schema.path, keyword)
        if keyword in _ONE:
            yield (keyword,), value, path
        elif keyword in _SEVERAL and isinstance(value, list):
            for index, inner in enumerate(value):
                yield (keyword, str(index)), inner, item(path, index)
        elif keyword in _NAMED and isinstance(value, Mapping):
            for name, inner in value.items():
                yield (keyword, name), inner, child(path, name)


def _target(schema: _Schema, schemas: Mapping[Pointer, _Schema]) -> Pointer:
    written = schema.content["$ref"]
    path = child(schema.path, "$ref")
    if not isinstance(written, str) or (written != "#" and not written.startswith("#/")):
        raise _unfit(path, f"{shown(repr(written))} leads out of the schema; write #/$defs/name")
    names = unquote(written).split("/")[1:]
    target = tuple(name.replace("~1", "/").replace("~0", "~") for name in names)
    if target not in schemas:
        raise _unfit(path, f"there is no schema at {shown(repr(written))}; write #/$defs/name")
    return target


def _unfit(where: str, reason: str) -> InvalidBlueprint:
    return InvalidBlueprint(f"{where}: {reason}.", field=where)
