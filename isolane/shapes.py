"""The shape of JSON values, by type hint: one checker for frames and for nodes' parameters.

A hint is turned into a function once; frames are checked on the hot path. The path of a wrong value
is built only when there is one.
"""

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

_JSON_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    types.NoneType: "null",
}

_OF_NUMBERS = frozenset({"exclusiveMinimum", "minimum", "maximum"})
_LIMITS_OF: dict[str | None, frozenset[str]] = {
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "string": frozenset({"minLength", "maxLength", "resource"}),
}

Check = Callable[[Any], Any]  # returns the value as the hint demands, or raises ShapeError


class ShapeError(ValueError):
    """A value does not have the demanded shape."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}")
        self.reason = reason
        self.where = where

    def below(self, where: str) -> Self:
        """Return the same error with a longer path."""
        return type(self)(self.reason, where + self.where)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a parameter, beside its type: `Annotated[float, Limits(above=0, maximum=60)]`."""

    above: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The limits in JSON Schema."""
        keywords = {
            "exclusiveMinimum": self.above,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "minLength": self.min_length,
            "maxLength": self.max_length,
        }
        return {keyword: limit for keyword, limit in keywords.items() if limit is not None}

    def check(self, value: Any) -> None:
        """Refuse a value outside the limits."""
        if self.above is not None and not value > self.above:
            raise ShapeError(f"{value!r} is not above {self.above}")
        if self.minimum is not None and not value >= self.minimum:
            raise ShapeError(f"{value!r} is below {self.minimum}")
        if self.maximum is not None and not value <= self.maximum:
            raise ShapeError(f"{value!r} is above {self.maximum}")
        if self.min_length is not None and len(value) < self.min_length:
            raise ShapeError(f"{len(value)} characters, at least {self.min_length} are needed")
        if self.max_length is not None and len(value) > self.max_length:
            raise ShapeError(f"{len(value)} characters, at most {self.max_length} are allowed")


@dataclasses.dataclass(frozen=True)
class Uses:
    """Marks a parameter that names a declared resource of this type: `Annotated[str, Uses("http_api")]`."""

    type: str = ""  # empty for any type

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema keyword by which publishing checks that the blueprint declares it."""
        return {"resource": self.type}

    def check(self, value: Any) -> None:
        """Accept any name: only the run's context knows the declared ones."""


def build(hint: Any, value: Any, where: str) -> Any:
    """Return the value as the hint demands, or raise a ShapeError with its path and reason."""
    try:
        return check_of(hint)(value)
    except ShapeError as error:
        raise error.below(where) from None


def schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a hint that a node's parameter may have."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return {}
    if origin is Annotated:
        limits = {keyword: v for note in _notes(hint) for keyword, v in note.schema.items()}
        return _limited_schema(schema_of(args[0]), limits)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(_optional(hint)), {"type": "null"}]}
    if origin is Literal and all(isinstance(choice, str) for choice in args):
        return {"type": "string", "enum": list(args)}
    if origin not in (str, bool, int, float, list, dict):
        raise TypeError(
            f"{hint!r} is not one of str, int, float, bool, list, dict, Any, Literal of texts or X | None"
        )
    schema: dict[str, Any] = {"type": _JSON_NAMES[origin]}
    if args:
        schema["items" if origin is list else "additionalProperties"] = schema_of(args[-1])
    return schema


@functools.cache
def check_of(hint: Any) -> Check:
    """Return the function that checks values against this hint."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return _anything
    if origin is Annotated:
        return _limited(check_of(args[0]), _notes(hint))
    if origin in (Union, types.UnionType):
        return _maybe(check_of(_optional(hint)))
    if origin is Literal:
        return _choice(str, args)
    if origin is dict:
        return _object(check_of(args[1] if args else Any))
    if origin in (list, tuple):
        return _array(origin, check_of(args[0] if args else Any))
    if dataclasses.is_dataclass(origin):
        return _record(origin)
    if issubclass(origin, StrEnum):
        return _choice(origin, tuple(origin))
    return _number if origin is float else _scalar(origin)


def _optional(hint: Any) -> Any:
    inner = [arg for arg in get_args(hint) if arg is not types.NoneType]
    if len(inner) != 1:
        raise TypeError(f"{hint!r} joins several types; only X | None is allowed")
    return inner[0]


def _notes(hint: Any) -> tuple[Limits | Uses, ...]:
    notes: tuple[Any, ...] = hint.__metadata__
    if not all(isinstance(note, Limits | Uses) for note in notes):
        raise TypeError(f"{hint!r} has annotations other than Limits and Uses")
    return notes


def _limited_schema(schema: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    possible = _LIMITS_OF.get(schema.get("type"), frozenset())
    if wrong := sorted(limits.keys() - possible):
        raise TypeError(f"{wrong[0]} is not a limit of {schema.get('type', 'anything')}")
    return schema | limits


def _limited(check: Check, notes: tuple[Limits | Uses, ...]) -> Check:
    def limited(value: Any) -> Any:
        checked = check(value)
        for note in notes:
            note.check(checked)
        return checked

    return limited


def _anything(value: Any) -> Any:
    return value


def _maybe(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _choice(kind: type[str], choices: tuple[str, ...]) -> Check:
    def choice(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ShapeError(f"expected one of {', '.join(choices)}")
        return kind(value)

    return choice


def _object(check: Check) -> Check:
    def checked(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise _wrong("object", value)
        if check is _anything:
            return value
        return {key: _inside(check, inner, f".{key}") for key, inner in value.items()}

    return checked


def _array(kind: type, check: Check) -> Check:
    def array(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _wrong("array", value)
        if check is _anything:
            return kind(value)
        return kind(_inside(check, inner, f"[{i}]") for i, inner in enumerate(value))

    return array


def _inside(check: Check, value: Any, where: str) -> Any:
    try:
        return check(value)
    except ShapeError as error:
        raise error.below(where) from None


def _record(cls: Any) -> Check:
    hints = get_type_hints(cls)
    checks = {field.name: check_of(hints[field.name]) for field in dataclasses.fields(cls)}
    required = frozenset(field.name for field in dataclasses.fields(cls) if _is_required(field))

    def record(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise _wrong("object", value)
        if unknown := sorted(value.keys() - checks.keys()):
            raise ShapeError(f"unknown field {unknown[0][:64]!r}")
        if missing := sorted(required - value.keys()):
            raise ShapeError(f"field {missing[0]!r} is missing")
        fields = {}
        for name, inner in value.items():
            try:
                fields[name] = checks[name](inner)
            except ShapeError as error:
                raise error.below(f".{name}") from None
        try:
            return cls(**fields)
        except ValueError as error:
            raise ShapeError(str(error)) from None

    return record


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _scalar(kind: type) -> Check:
    def scalar(value: Any) -> Any:
        # In Python a bool is an int, in JSON it is not.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _wrong(_JSON_NAMES[kind], value)
        return value

    return scalar


def _number(value: Any) -> float:
    # An integer is a number in JSON as in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(_JSON_NAMES[float], value)
    try:
        return float(value)
    except OverflowError:
        raise ShapeError("expected number, got one too large") from None


def _wrong(expected: str, value: Any) -> ShapeError:
    got = _JSON_NAMES.get(type(value), type(value).__name__)
    return ShapeError(f"expected {expected}, got {got}")
