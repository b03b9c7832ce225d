"""Blueprints whose inputs are the most expensive to validate, and inputs that make them so. Pure."""

import json
from dataclasses import dataclass
from typing import Any

from trials.siege.plan import SCHEMAS

BLUEPRINT: dict[str, Any] = {
    "steps": [{"key": "one", "uses": "data.map", "with": {"values": {"text": "done"}}}]
}
# Refuses all inputs, so no run starts even if validation is not stopped.
REFUSED: dict[str, Any] = {"required": ["never"]}
DEPTHS = (8, 10, 11, 12, 13, 14, 16, 20, 30, 40)
# From sizes that every limit must refuse to sizes that every limit must accept.
REPEATS = (900, 450, 190, 90, 40)
TEXTS = (900_000, 100_000)
ALIKE = (1, 6)  # patterns in one schema


@dataclass(frozen=True, kw_only=True)
class ExpensiveSchema:
    """One schema, with both request bodies ready to send."""

    name: str
    source: bytes  # for publishing and validating
    submission: bytes


def expensive(number: int = SCHEMAS) -> list[ExpensiveSchema]:
    """Return references that double with each level, then patterns that are slow in RE2."""
    bombs = [_schema(f"refs-{depth}", _doubling_refs(depth), {"a": 1}) for depth in DEPTHS]
    patterns = [
        _schema(f"re2-{repeats}-{alike}-{length}", _patterns(repeats, alike), {"a": "a" * length})
        for repeats in REPEATS
        for alike in ALIKE
        for length in TEXTS
    ]
    return (bombs + patterns)[:number]


def small() -> bytes:
    """Return the request that publishes the victim's blueprint."""
    return _source({"name": "small", **BLUEPRINT})


def _doubling_refs(depth: int) -> dict[str, Any]:
    levels: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(depth)
    }
    levels[f"d{depth}"] = {"type": "object"}
    return {"$defs": levels, "allOf": [{"$ref": "#/$defs/d0"}, REFUSED]}


def _patterns(repeats: int, alike: int) -> dict[str, Any]:
    # Different patterns: equal ones would be compiled only once.
    patterns = [{"pattern": f"(?:a?){{{repeats - turn}}}b"} for turn in range(alike)]
    return {"properties": {"a": {"allOf": patterns}}, **REFUSED}


def _schema(name: str, schema: dict[str, Any], inputs: dict[str, Any]) -> ExpensiveSchema:
    document = {"name": name, "inputs": {"type": "object", **schema}, **BLUEPRINT}
    submission = {"blueprint": name, "inputs": inputs}
    return ExpensiveSchema(
        name=name, source=_source(document), submission=json.dumps(submission).encode()
    )


def _source(document: dict[str, Any]) -> bytes:
    return json.dumps({"source": json.dumps(document)}).encode()
