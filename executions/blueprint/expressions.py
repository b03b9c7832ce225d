"""References in a step's parameters: `${inputs.x}`, `${steps.fetch.total}`. Pure.

The expression language is JMESPath: without side effects, known to people, and here without what multiplies values.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from executions.blueprint.errors import BadReference, shown
from isolane.protocol import MAX_DEPTH, MAX_FRAME, is_too_deep

MAX_EXPRESSION = 1000  # characters
MAX_REFERENCES = 200  # in one step
MAX_SELECTED = 10  # members of all [a, b] in one expression; nested, they multiply what they select
REFERENCE = re.compile(r"\$\{([^{}]+)\}")
STEP_REFERENCE = re.compile(r"(?<![\w.])steps\.\"?([a-z][a-z0-9_-]*)")
_ROOT = re.compile(r"(?:inputs|steps)\b(?!\s*\()")
# A separator or a quote can make a text grow without limit; text around a reference does the same.
_GROWING = frozenset({"join", "to_string"})


def resolve(value: Any, scope: Mapping[str, Any]) -> Any:
    """Replace every reference inside a value; one that stands alone keeps its type, others become text."""
    resolved = _Resolver(scope).resolve(value)
    if is_too_deep(resolved):
        raise BadReference(f"The parameters would be nested deeper than {MAX_DEPTH} levels.")
    return resolved


def texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Every text inside a value, with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in key:
                raise BadReference(
                    f"{shown(where)}: a key holds '${{'; only values have references.",
                    field=shown(where),
                )
            yield from texts(item, f"{where}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, f"{where}[{index}]")


def expressions(text: str) -> list[str]:
    """The expressions in one text."""
    return [match[1].strip() for match in REFERENCE.finditer(text)]


def check_text(text: str) -> None:
    """Refuse a text with a reference that is not whole: it would stay as it is, silently."""
    if "$${" in text:
        raise BadReference("'$${' is no escape, and a reference cannot follow a '$'.")
    if any("${" in between for between in REFERENCE.split(text)[::2]):
        raise BadReference(
            f"'{shown(text)}' has a '${{' that begins no reference; write ${{inputs.name}},"
            " without braces inside."
        )


def check_expression(expression: str) -> None:
    """Refuse an expression that cannot be evaluated."""
    _compile(expression)
    if not _ROOT.match(expression):
        raise BadReference(f"{_quoted(expression)} must begin with inputs or steps.")


class _Resolver:
    """Resolves the references of one step, and counts what they come to before it is built."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self._left = MAX_FRAME

    def resolve(self, value: Any) -> Any:
        """A value with its references replaced."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return value

    def _text(self, text: str) -> Any:
        if alone := REFERENCE.fullmatch(text):
            return self._found(alone[1].strip())
        return REFERENCE.sub(lambda match: _as_text(self._found(match[1].strip())), text)

    def _found(self, expression: str) -> Any:
        value = _search(expression, self._scope)
        for size in _sizes(value):
            self._left -= size
            if self._left < 0:
                raise BadReference(
                    f"{_quoted(expression)} makes the parameters larger than {MAX_FRAME} bytes."
                )
        return value


def _sizes(value: Any) -> Iterator[int]:
    """The sizes of a value's parts as JSON, nearly, one by one: a small expression can stand for a huge value."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield len(part) + 2
        elif isinstance(part, dict):
            yield 2 + sum(len(key) + 4 for key in part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            yield 2 + len(part)
            waiting.extend(part)
        else:
            yield 1


def _compile(expression: str) -> Any:
    if len(expression) > MAX_EXPRESSION:
        raise BadReference(f"{_quoted(expression)} is longer than {MAX_EXPRESSION} characters.")
    try:
        compiled = jmespath.compile(expression)
        _refuse_growth(expression, compiled.parsed)
    except (JMESPathError, ValueError, RecursionError, MemoryError):
        raise BadReference(f"{_quoted(expression)} is not a JMESPath expression.") from None
    return compiled


def _refuse_growth(expression: str, tree: Any) -> None:
    selected = 0
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node["type"] == "function_expression" and node["value"] in _GROWING:
            raise BadReference(
                f"{_quoted(expression)} uses {node['value']}(), which is not allowed."
            )
        if node["type"] == "multi_select_list":
            selected += len(node["children"])
        waiting.extend(child for child in node["children"] if isinstance(child, dict))
    if selected > MAX_SELECTED:
        raise BadReference(f"{_quoted(expression)} selects more than {MAX_SELECTED} values.")


def _search(expression: str, scope: Mapping[str, Any]) -> Any:
    compiled = _compile(expression)
    try:
        return compiled.search(scope)
    except (
        *(ValueError, TypeError, ArithmeticError, LookupError, AttributeError),
        *(RecursionError, MemoryError),
    ):
        # JMESPathError is a ValueError; Python's own come from values of mixed types. The messages quote values.
        raise BadReference(
            f"{_quoted(expression)} cannot be evaluated on this run's values."
        ) from None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(expression: str) -> str:
    return f"'${{{shown(expression)}}}'"
