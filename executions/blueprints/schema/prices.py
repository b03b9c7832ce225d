"""Prices of checking a value against a JSON Schema, in units of 10 ns. Pure.

`python -m bench.validation_cost` measures; these are a little higher.
"""

from collections.abc import Callable, Mapping
from typing import Any

Size = Callable[[Any], int]  # the approximate number of characters of a value
Price = Callable[[Any, Any, Size], int]  # of a keyword's value and an instance

CALL = 200  # one keyword looks at one value
INTO = 350  # from a schema into one inside it
_TRY = 700  # the same with a validator of its own
_REFERENCE = 1000  # one $ref
_POINTER = 150  # one name of its pointer
_NAME = 80  # one name of an object is looked up
LISTED = 10  # one name of `required` or `properties` is looked up in an object
_MEMBER = 15  # one member of an enum is compared
_COMPARED = 6  # one character of two values that are compared
_WRITTEN = 10  # one character of a value that is written out to be compared
_ITEM = 200  # one item that must be unique
ERROR = 500  # one error
PASSED_ON = 100  # an error, by each keyword around it
QUOTED = 2  # one character of its message: the original quotes whole values
COMPILED = 5_000  # one pattern, and
INSTRUCTION = 30  # each instruction of it
MATCH = 350  # one pattern looks at one text, and
STEPS = 20  # instructions that look at a byte in one unit; only one if RE2 gives up its automaton
LONG = 100_000  # steps after which the clock is read: a millisecond in the worst case


def _length(value: Any, kind: type[Any]) -> int:
    return len(value) if isinstance(value, kind) else 0


def _of_names(value: Any, instance: Any, _: Size) -> int:
    into = INTO if isinstance(value, dict) else 0
    return (_NAME + into) * _length(instance, dict)


def _of_properties(value: Any, instance: Any, _: Size) -> int:
    return LISTED * len(value) + INTO * min(len(value), _length(instance, dict))


def _of_enum(value: Any, instance: Any, size: Size) -> int:
    compared = min(size(value), len(value) * size(instance))
    return _MEMBER * len(value) + _COMPARED * compared


def _of_items(_: Any, instance: Any, __: Size) -> int:
    return INTO * _length(instance, list)


def _of_unique_items(_: Any, instance: Any, size: Size) -> int:
    return _ITEM * _length(instance, list) + _WRITTEN * size(instance)


def _of_a_reference(value: Any, _: Any, __: Size) -> int:
    return _REFERENCE + _POINTER * str(value).count("/")


def _of_parts(units: int) -> Price:
    return lambda value, _, __: units * len(value)


# Without the prices of the schemas inside.
PRICES: Mapping[str, Price] = {
    "$ref": _of_a_reference,
    "$dynamicRef": _of_a_reference,
    "additionalProperties": _of_names,
    "allOf": _of_parts(INTO),
    "anyOf": _of_parts(_TRY),
    "const": lambda value, instance, size: _COMPARED * min(size(value), size(instance)),
    "contains": lambda _, instance, __: _TRY * _length(instance, list),
    "dependentRequired": lambda value, _, size: _NAME * len(value) + LISTED * size(value),
    "dependentSchemas": _of_parts(INTO),
    "enum": _of_enum,
    "if": lambda *_: _TRY + INTO,
    "items": _of_items,
    "not": lambda *_: _TRY + INTO,
    "oneOf": _of_parts(2 * _TRY),
    "prefixItems": _of_items,
    "properties": _of_properties,
    "propertyNames": _of_names,
    "required": _of_parts(LISTED),
    "uniqueItems": _of_unique_items,
}
