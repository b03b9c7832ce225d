"""Measure what validation costs beside what it is charged: `python -m bench.validation_cost`.

The prices in `executions/blueprints/` are right if the counted time is at least the measured CPU time.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jsonschema.exceptions import best_match

from executions.blueprints import work
from executions.blueprints.schema.keywords import BoundedValidator, bounded, compiled

MANY = 5_000
_UNIT_NS = 10
_RANDOM = random.Random(1)  # noqa: S311 - texts to match, not secrets
_NAMES = [f"k{number}" for number in range(MANY)]
_OBJECT: dict[str, Any] = dict.fromkeys(_NAMES, 1)
_ROWS = [{"id": number, "name": "x" * 20, "tags": ["a", "b"]} for number in range(MANY // 5)]
_ROW = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string", "maxLength": 50},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
_DOUBLED = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(10)}
# A schema and an instance for each price.
CASES: dict[str, tuple[Any, Any]] = {
    "items, any": ({"items": {}}, [1] * MANY),
    "items, type": ({"items": {"type": "integer"}}, [1] * MANY),
    "items, errors": ({"items": {"type": "string"}}, [1] * MANY),
    "contains": ({"contains": {"type": "string"}}, [1] * MANY),
    "propertyNames": ({"propertyNames": {"maxLength": 20}}, _OBJECT),
    "additionalProperties": ({"additionalProperties": {}}, _OBJECT),
    "additionalProperties: false": ({"additionalProperties": False}, _OBJECT),
    "properties": ({"properties": {name: {} for name in _NAMES}}, _OBJECT),
    "required, missing": ({"required": _NAMES}, {}),
    "dependentRequired": ({"dependentRequired": {name: ["z"] for name in _NAMES}}, _OBJECT),
    "allOf": ({"allOf": [{}] * MANY}, 1),
    "anyOf, none": ({"anyOf": [{"type": "string"}] * MANY}, 1),
    "oneOf, none": ({"oneOf": [{"type": "string"}] * MANY}, 1),
    "not": ({"items": {"not": {"type": "string"}}}, [1] * MANY),
    "if": ({"items": {"if": {"type": "string"}, "else": {}}}, [1] * MANY),
    "$ref": ({"$defs": {"a": {}}, "items": {"$ref": "#/$defs/a"}}, [1] * MANY),
    "$ref, doubled": ({"$defs": {**_DOUBLED, "d10": {}}, "$ref": "#/$defs/d0"}, {}),
    "enum, numbers": ({"items": {"enum": list(range(500))}}, ["x"] * 500),
    "enum, objects": ({"enum": [_OBJECT] * 10}, {**_OBJECT, "k1": 2}),
    "const": ({"allOf": [{"const": list(range(MANY))}] * 10}, [*range(MANY - 1), "z"]),
    "uniqueItems": ({"uniqueItems": True}, list(range(4 * MANY))),
    "uniqueItems, floats": ({"uniqueItems": True}, [number + 0.5 for number in range(4 * MANY)]),
    "uniqueItems, objects": ({"uniqueItems": True}, _ROWS),
    "messages": ({"allOf": [{"type": "string"}] * 20}, _ROWS),
    "rows": ({"items": _ROW}, _ROWS),
    "patterns, short texts": ({"items": {"pattern": "^a+$"}}, ["aaa"] * MANY),
    "patternProperties": ({"patternProperties": {"^x": {}, "1$": {}}}, _OBJECT),
    "pattern, compiled": ({"allOf": [{"pattern": f"^.{{1,{n}}}$"} for n in range(200, 250)]}, "a"),
}
# RE2 gives up its automaton here: each byte costs as many steps as the pattern has instructions.
HARD_PATTERNS: dict[str, tuple[str, str]] = {
    "(?:a?){900}b": ("(?:a?){900}b", "a" * 10_000),
    "(a?b?){320}c": ("(a?b?){320}c", "".join(_RANDOM.choices("ab", k=10_000))),
    "a[ab]{20}c": ("a[ab]{20}c", "".join(_RANDOM.choices("ab", k=200_000))),
}


class Counter(work.Work):
    """Work without a limit, which counts what is spent."""

    def __init__(self) -> None:
        super().__init__(10**15)
        self._limit = 10**15

    @property
    def spent(self) -> int:
        """Return the units spent so far."""
        return self._limit - self._left


@contextmanager
def counted() -> Iterator[Counter]:
    """Count what validation inside the block spends."""
    counter = Counter()
    token = work._CURRENT.set(counter)
    try:
        yield counter
    finally:
        work._CURRENT.reset(token)


def count(schema: Any, instance: Any) -> int:
    """Return the units that one validation spends."""
    with counted() as counter, bounded():
        best_match(BoundedValidator(schema).iter_errors(instance))
    return counter.spent


def worst(pattern: str, text: str) -> int:
    """Return the units that must be left before a text is matched."""
    return len(text.encode()) * int(compiled(pattern).programsize)


def main() -> None:
    """Print counted time, CPU time and their ratio for each case."""
    for name, (schema, instance) in CASES.items():
        began = time.thread_time_ns()
        units = count(schema, instance)
        _print(name, units, time.thread_time_ns() - began)
    for name, (pattern, text) in HARD_PATTERNS.items():
        began = time.thread_time_ns()
        compiled(pattern).search(text)
        _print(name, worst(pattern, text), time.thread_time_ns() - began)


def _print(name: str, units: int, took_ns: int) -> None:
    counted_ns = units * _UNIT_NS
    shown = {
        "case": name,
        "counted_ms": round(counted_ns / 1e6, 1),
        "cpu_ms": round(took_ns / 1e6, 1),
        "cpu_of_counted": round(took_ns / counted_ns, 2),
    }
    sys.stdout.write(f"{json.dumps(shown)}\n")


if __name__ == "__main__":
    main()
