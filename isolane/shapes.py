"""The shape of JSON values, by type hint: one checker for frames and for nodes' parameters."""

import dataclasses
import functools
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_JSON_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    types.NoneType: "null",
}


class ShapeError(ValueError):
    """A value does not have the shape that its place demands."""


def build(hint: Any, value: Any, where: str) -> Any:
    """Return value as the hint demands, or raise ShapeError that names where and what."""
    origin = get_origin(hint) or hint
    if origin is Any:
        return value
    if origin in (Union, types.UnionType):
        return None if value is None else build(_optional(hint), value, where)
    if origin is Literal:
        return _choice(get_args(hint), value, where)
    if origin in (list, tuple, dict):
        return _container(origin, get_args(hint), value, where)
    if isinstance(value, origin) and dataclasses.is_dataclass(value):
        return value
    if dataclasses.is_dataclass(origin):
        return _record(hint, value, where)
    if issubclass(origin, StrEnum):
        return origin(_choice(tuple(origin), value, where))
    return _scalar(origin, value, where)


def schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a hint that a node's parameter may have."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return {}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(_optional(hint)), {"type": "null"}]}
    if origin not in (str, bool, int, float, list, dict):
        raise TypeError(f"{hint!r} is none of str, int, float, bool, list, dict, Any or X | None")
    schema: dict[str, Any] = {"type": _JSON_NAMES[origin]}
    if args:
        schema["items" if origin is list else "additionalProperties"] = schema_of(args[-1])
    return schema


def _optional(hint: Any) -> Any:
    inner = [arg for arg in get_args(hint) if arg is not types.NoneType]
    if len(inner) != 1:
        raise TypeError(f"{hint!r} joins several types; only X | None is possible")
    return inner[0]


def _choice(choices: tuple[str, ...], value: Any, where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ShapeError(f"{where}: expected one of {', '.join(choices)}")
    return value


def _container(origin: type, args: tuple[Any, ...], value: Any, where: str) -> Any:
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise _wrong("object", value, where)
        return {k: build(args[1], v, f"{where}.{k}") for k, v in value.items()} if args else value
    if not isinstance(value, list | tuple):
        raise _wrong("array", value, where)
    item = args[0] if args else Any
    return origin(build(item, v, f"{where}[{i}]") for i, v in enumerate(value))


def _record(cls: type, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong("object", value, where)
    hints, required = _fields(cls)
    if unknown := sorted(set(value) - set(hints)):
        raise ShapeError(f"{where}: unknown field {unknown[0][:64]!r}")
    if missing := sorted(required - set(value)):
        raise ShapeError(f"{where}: field {missing[0]!r} is missing")
    built = {name: build(hints[name], v, f"{where}.{name}") for name, v in value.items()}
    try:
        return cls(**built)
    except ValueError as error:
        raise ShapeError(f"{where}: {error}") from None


@functools.cache
def _fields(cls: type) -> tuple[dict[str, Any], frozenset[str]]:
    missing = dataclasses.MISSING
    required = (f.name for f in dataclasses.fields(cls) if f.default is missing)
    return get_type_hints(cls), frozenset(required)


def _scalar(kind: type, value: Any, where: str) -> Any:
    # In Python a bool is an int, in JSON it is not; an integer is a number in both.
    if isinstance(value, bool) and kind is not bool:
        raise _wrong(_JSON_NAMES[kind], value, where)
    if kind is float and isinstance(value, int | float):
        return _number(value, where)
    if not isinstance(value, kind):
        raise _wrong(_JSON_NAMES[kind], value, where)
    return value


def _number(value: float, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ShapeError(f"{where}: expected number, got one too large") from None


def _wrong(expected: str, value: Any, where: str) -> ShapeError:
    got = _JSON_NAMES.get(type(value), type(value).__name__)
    return ShapeError(f"{where}: expected {expected}, got {got}")
