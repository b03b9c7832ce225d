"""References in plain Python: what they come to on the values of a run. Knows nothing of how the core does it."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


class Unresolvable(Exception):
    """A reference cannot be evaluated on the run's values."""


def holds(condition: str | None, scope: Mapping[str, Any]) -> bool:
    """Return True if a step runs under this condition."""
    if condition is None:
        return True
    value = resolved(condition, scope)
    return value is not None and value is not False and value not in ("", [], {})


def resolved(value: Any, scope: Mapping[str, Any]) -> Any:
    """The value with what its references come to."""
    if isinstance(value, dict):
        return {name: resolved(inner, scope) for name, inner in value.items()}
    if not isinstance(value, str) or "${" not in value:
        return value
    before, rest = value.split("${")
    reference, after = rest.split("}")
    found = _found(reference, scope)
    if not before and not after:
        return found
    return before + (found if isinstance(found, str) else written(found)) + after


def _found(reference: str, scope: Any) -> Any:
    if "(" in reference:
        raise Unresolvable
    for name in reference.split("."):
        scope = scope.get(name) if isinstance(scope, dict) else None
    return scope


def stored(value: Any) -> Any:
    """A large number without a fraction is an integer, however it was written."""
    if isinstance(value, dict):
        return {name: stored(inner) for name, inner in value.items()}
    return int(Decimal(repr(value))) if isinstance(value, float) and abs(value) >= 1e16 else value


def written(value: Any) -> str:
    """An object has its names in order, whatever order they came in."""
    return json.dumps(value, sort_keys=True)
