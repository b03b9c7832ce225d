"""JSON Schema with bounded work: regular expressions in linear time, and a limit on everything else. Pure.

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

from executions.blueprints.errors import shown
from executions.blueprints.schema.prices import (
    CALL,
    COMPILED,
    ERROR,
    INSTRUCTION,
    INTO,
    LISTED,
    LONG,
    MATCH,
    PASSED_ON,
    PRICES,
    QUOTED,
    STEPS,
)
from executions.blueprints.work import TooMuchWork, Work, check_budget

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

_PATTERN_MEMORY = 2 * 1024 * 1024  # bytes, per pattern
MAX_PATTERN = 4_000  # instructions of a published pattern
UNSUPPORTED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_STOCK: Mapping[str, Any] = Draft202012Validator.VALIDATORS
_ENCODER = json.JSONEncoder(sort_keys=True)


class PatternError(ValueError):
    """A pattern that RE2 does not support."""


class _Meter:
    """Counts the work of one check."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._patterns: dict[str, Any] = {}
        self._sizes: dict[int, int] = {}

    def size(self, value: Any) -> int:
        """Return the approximate number of characters of a value; each container is visited once in a check."""
        if isinstance(value, str):
            return len(value)
        if not isinstance(value, dict | list):
            return 10
        if id(value) not in self._sizes:
            self.work.spend(LISTED * len(value))
            inside = value.values() if isinstance(value, dict) else value
            names = sum(map(len, value)) if isinstance(value, dict) else 0
            self._sizes[id(value)] = names + 2 * len(value) + sum(map(self.size, inside))
        return self._sizes[id(value)]

    def pattern(self, text: str) -> Any:
        """Return a pattern, compiled once for each check: RE2's own cache is shared by all."""
        if text not in self._patterns:
            self.work.spend(COMPILED)
            self._patterns[text] = compiled(text)
            self.work.spend(self._patterns[text].programsize * INSTRUCTION)
        return self._patterns[text]

    def matches(self, pattern: str, text: str) -> bool:
        """Search a text; it cannot be interrupted, so it begins only if the worst case fits in the remaining work."""
        expression = self.pattern(pattern)
        data = text.encode()
        steps = len(data) * expression.programsize
        self.work.refuse_over(MATCH + steps)
        self.work.spend(MATCH + steps // STEPS)
        found = expression.search(data) is not None
        if steps > LONG:
            self.work.look()
        return found


_METER: ContextVar[_Meter | None] = ContextVar("_METER", default=None)


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Raise TooMuchWork from checks inside the block beyond the limit."""
    with check_budget() as work:
        token = _METER.set(_Meter(work))
        try:
            yield
        finally:
            _METER.reset(token)


def compiled(pattern: Any) -> Any:
    """Compile a pattern with RE2, which takes linear time; it has no lookaround and no backreferences."""
    if not isinstance(pattern, str):
        raise PatternError("it is not text")
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
    return meter.matches(pattern, text) if meter else compiled(pattern).search(text) is not None


def _spend(units: int) -> None:
    if meter := _METER.get():
        meter.work.spend(units)


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
                _spend(INTO)
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
    # Without patternProperties the original has no need for re.
    yield from _STOCK["additionalProperties"](validator, value, instance, {"properties": known})


def _unique_items(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    # The original compares all pairs if the items cannot be sorted.
    if not value or not validator.is_type(instance, "array"):
        return
    if len(set(map(_as_text, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _as_text(value: Any) -> str:
    text = _ENCODER.encode(value)
    return _ENCODER.encode(_equal_as_text(value)) if "." in text or "e" in text else text


def _equal_as_text(value: Any) -> Any:
    """Return 1 for 1.0: JSON Schema takes them as equal."""
    if isinstance(value, dict):
        return {key: _equal_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_equal_as_text(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unsupported(*_: Any) -> Iterator[ValidationError]:
    raise TooMuchWork


def _metered(name: str, keyword: Keyword) -> Keyword:
    price = PRICES.get(name)

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        meter = _METER.get()
        if meter is None:
            yield from keyword(validator, value, instance, schema) or ()
            return
        meter.work.spend(CALL + price(value, instance, meter.size) if price else CALL)
        for error in keyword(validator, value, instance, schema) or ():
            is_new = not isinstance(error.validator, str)
            meter.work.spend((ERROR if is_new else PASSED_ON) + QUOTED * len(error.message))
            error.message = shown(error.message)  # many full messages would take much memory
            yield error

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
