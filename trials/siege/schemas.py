"""Blueprints whose inputs cost the most to check, and inputs that make them so. Pure."""

import json
from dataclasses import dataclass
from typing import Any

from trials.siege.plan import SCHEMAS

BLUEPRINT: dict[str, Any] = {
    "steps": [{"key": "one", "uses": "data.map", "with": {"values": {"text": "done"}}}]
}
# So that no run comes of it, however much work the check allows.
REFUSED: dict[str, Any] = {"required": ["never"]}
DEPTHS = (8, 10, 11, 12, 13, 14, 16, 20, 30, 40)
# From what any limit must refuse to what any must accept.
REPEATS = (900, 450, 190, 90, 40)
TEXTS = (900_000, 100_000)
ALIKE = (1, 6)  # patterns in one schema


@dataclass(frozen=True, kw_only=True)
class Case:
    """One schema; both bodies are ready to be sent."""

    name: str
    source: bytes  # for publishing and validating
    submission: bytes


def cases(number: int = SCHEMAS) -> list[Case]:
    """References that double with each level, then patterns that RE2 takes its time for."""
    bombs = [_case(f"refs-{depth}", _bomb(depth), {"a": 1}) for depth in DEPTHS]
    patterns = [
        _case(f"re2-{repeats}-{alike}-{length}", _patterns(repeats, alike), {"a": "a" * length})
        for repeats in REPEATS
        for alike in ALIKE
        for length in TEXTS
    ]
    return (bombs + patterns)[:number]


def small() -> bytes:
    """The victim's blueprint, for publishing."""
    return _source({"name": "small", **BLUEPRINT})


def _bomb(depth: int) -> dict[str, Any]:
    levels: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(depth)
    }
    levels[f"d{depth}"] = {"type": "object"}
    return {"$defs": levels, "allOf": [{"$ref": "#/$defs/d0"}, REFUSED]}


def _patterns(repeats: int, alike: int) -> dict[str, Any]:
    # Different texts, or one compiled pattern would do for all.
    patterns = [{"pattern": f"(?:a?){{{repeats - turn}}}b"} for turn in range(alike)]
    return {"properties": {"a": {"allOf": patterns}}, **REFUSED}


def _case(name: str, schema: dict[str, Any], inputs: dict[str, Any]) -> Case:
    document = {"name": name, "inputs": {"type": "object", **schema}, **BLUEPRINT}
    submission = {"blueprint": name, "inputs": inputs}
    return Case(name=name, source=_source(document), submission=json.dumps(submission).encode())


def _source(document: dict[str, Any]) -> bytes:
    return json.dumps({"source": json.dumps(document)}).encode()
