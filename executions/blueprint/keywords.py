"""JSON Schema with bounded work: regular expressions in linear time, and a limit for all the rest. Pure.

A tenant writes the schema and sends the inputs, and one request must not keep the others waiting.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import re2
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from executions.blueprint.work import TooMuchWork, Work

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

MAX_WORK = 100_000_000  # units, about 30 ns each
_CALL = 100  # units of one keyword on one value
_REFERENCE = (
    1000  # units of one $ref: looking it up takes long, and only refs can multiply the work
)
_COMPILING = 10  # units for each instruction of a pattern
_PATTERN_MEMORY = 2 * 1024 * 1024  # bytes, per pattern
_PATTERN_STEPS = 100  # of RE2's machine in one unit
UNSUPPORTED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
# These may look at the same value once for each of their parts.
_MANIFOLD = frozenset({"allOf", "anyOf", "dependentSchemas", "oneOf", "patternProperties"})
# These compare with their own value, or quote it in their message.
_COMPARING = frozenset({"const", "enum", "not", "oneOf", "required"})
_STOCK: Mapping[str, Any] = Draft202012Validator.VALIDATORS


class PatternError(ValueError):
    """A pattern that RE2 does not know."""


class _Meter(Work):
    """Counts the work of one check, a message that quotes a whole value as its size."""

    def __init__(self, *values: Any) -> None:
        super().__init__(MAX_WORK)
        self._patterns: dict[str, Any] = {}
        self._sizes: dict[int, int] = {}
        for value in values:
            self._measure(value)

    def size(self, value: Any) -> int:
        """The characters of a value, nearly; containers were measured before."""
        return len(value) if isinstance(value, str) else self._sizes.get(id(value), 10)

    def pattern(self, text: str) -> Any:
        """A pattern, compiled once for each check: RE2's own cache is shared by all."""
        if text not in self._patterns:
            self._patterns[text] = compiled(text)
            self.spend(self._patterns[text].programsize * _COMPILING)
        return self._patterns[text]

    def _measure(self, value: Any) -> int:
        if isinstance(value, dict):
            size = 2 + sum(len(key) + 4 + self._measure(item) for key, item in value.items())
        elif isinstance(value, list):
            size = 2 + sum(2 + self._measure(item) for item in value)
        else:
            return self.size(value)
        self._sizes[id(value)] = size
        return size


_METER: ContextVar[_Meter | None] = ContextVar("_METER", default=None)


@contextlib.contextmanager
def bounded(*values: Any) -> Iterator[None]:
    """Within, checking raises TooMuchWork beyond the limit; give schema and instance."""
    token = _METER.set(_Meter(*values))
    try:
        yield
    finally:
        _METER.reset(token)


def compiled(pattern: Any) -> Any:
    """The pattern for RE2, which takes linear time; it knows no lookaround and no backreferences."""
    if not isinstance(pattern, str):
        raise PatternError("it is no text")
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(error)
        raise PatternError(text) from None


def _matches(pattern: str, text: str) -> bool:
    meter = _METER.get()
    if meter is None:
        return compiled(pattern).search(text) is not None
    expression = meter.pattern(pattern)
    meter.spend(_CALL + len(text) * expression.programsize // _PATTERN_STEPS)
    return expression.search(text) is not None


def _pattern(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(value, instance):
        yield ValidationError(f"{instance!r} does not match {value!r}")


def _pattern_properties(
    validator: Any, value: Any, instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in value.items():
        for name, item in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(item, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    known = {
        name: True
        for name in instance
        if name in properties or any(_matches(pattern, name) for pattern in patterns)
    }
    # Without patternProperties the original has nothing to look for with re.
    yield from _STOCK["additionalProperties"](validator, value, instance, {"properties": known})


def _unique_items(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    # The original compares each with each where the items cannot be sorted.
    if value and validator.is_type(instance, "array"):
        distinct = {json.dumps(_equal_as_text(item), sort_keys=True) for item in instance}
        if len(distinct) < len(instance):
            yield ValidationError(f"{instance!r} has non-unique elements")


def _equal_as_text(value: Any) -> Any:
    """For JSON Schema 1 and 1.0 are the same."""
    if isinstance(value, dict):
        return {key: _equal_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_equal_as_text(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unsupported(*_: Any) -> Iterator[ValidationError]:
    raise TooMuchWork


def _metered(name: str, keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if meter := _METER.get():
            parts = len(value) if name in _MANIFOLD else 1
            compared = meter.size(value) if name in _COMPARING else 0
            call = _REFERENCE if name in {"$ref", "$dynamicRef"} else _CALL
            meter.spend(call + parts * meter.size(instance) + compared)
        yield from keyword(validator, value, instance, schema) or ()

    return check


_OURS: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    **dict.fromkeys(UNSUPPORTED, _unsupported),
}
BoundedValidator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _metered(name, keyword) for name, keyword in {**_STOCK, **_OURS}.items()},
)
