"""References in a step's parameters: `${inputs.x}`, `${steps.fetch.total}`. Pure.

The expression language is JMESPath: bounded, without side effects, and known to people.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from orchestrator.core.errors import InvalidInput

REFERENCE = re.compile(r"\$\{([^{}]+)\}")
STEP_REFERENCE = re.compile(r"(?<![\w.])steps\.\"?([a-z][a-z0-9_-]*)")


class BadReference(InvalidInput):
    """An expression that does not parse or points nowhere."""

    code = "bad_reference"


def resolve(value: Any, scope: Mapping[str, Any]) -> Any:
    """Replace every reference inside a value; one that stands alone keeps its type, others become text."""
    if isinstance(value, str):
        return _resolve_text(value, scope)
    if isinstance(value, Mapping):
        return {key: resolve(item, scope) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, scope) for item in value]
    return value


def references(value: Any) -> Iterator[str]:
    """Every expression inside a value."""
    if isinstance(value, str):
        yield from (match[1].strip() for match in REFERENCE.finditer(value))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def check_expression(expression: str) -> None:
    """Refuse an expression that cannot be evaluated."""
    try:
        jmespath.compile(expression)
    except JMESPathError:
        raise BadReference(f"'${{{expression}}}' is not a JMESPath expression.") from None
    if expression.split(".", maxsplit=1)[0] not in {"inputs", "steps"}:
        raise BadReference(f"'${{{expression}}}' must begin with inputs. or steps.")


def _resolve_text(text: str, scope: Mapping[str, Any]) -> Any:
    if alone := REFERENCE.fullmatch(text):
        return _search(alone[1].strip(), scope)
    return REFERENCE.sub(lambda match: _as_text(_search(match[1].strip(), scope)), text)


def _search(expression: str, scope: Mapping[str, Any]) -> Any:
    try:
        return jmespath.search(expression, scope)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError):
        # JMESPathError is a ValueError; Python's own come from values of mixed types. The messages quote values.
        raise BadReference(
            f"'${{{expression}}}' cannot be evaluated on this run's values."
        ) from None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
