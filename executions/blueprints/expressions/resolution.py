"""References in a step's texts: `${inputs.x}`, `${steps.fetch.total}`, `${vars.y}`. Pure.

The expression language is JMESPath: well known, without side effects, and here without functions that multiply values.
An expression is parsed and checked once per process; most are plain paths, which need no interpreter. All references of
a step share one limit of work.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from executions.blueprints.errors import BadReference, shown
from executions.blueprints.expressions import evaluation
from executions.blueprints.expressions.parsing import Expression, parsed, quoted
from executions.blueprints.expressions.reasons import reason_of
from executions.blueprints.paths import child, item
from executions.blueprints.work import TooMuchWork, Work
from isolane.protocol import MAX_DEPTH, MAX_FRAME, is_too_deep

MAX_REFERENCES = 200  # in one step
ROOTS = ("inputs", "steps", "vars")
RECOVERY_ROOTS = (*ROOTS, "error")  # code, message and step of the failure that is recovered from
REFERENCE = re.compile(r"\$\{([^{}]+)\}")
OPENING = "${"


def resolve(value: Any, scope: Mapping[str, Any], where: str = "", work: Work | None = None) -> Any:
    """Replace every reference inside a value; one that stands alone keeps its type, others become text.

    A value without references is returned as it is, not as a copy: do not change it. `where` is the value's path within
    its step, such as `with`; a refusal begins with the path of the text that caused it. `work` is a limit that several
    calls share.
    """
    if not has_references(value):
        return value
    resolver = _Resolver(scope, work or evaluation_work())
    try:
        resolved = resolver.resolve(value)
    except BadReference as bad:
        raise _placed(bad, resolver.blamed(value, where)) from None
    if is_too_deep(resolved):
        deep = BadReference(f"The parameters would be nested deeper than {MAX_DEPTH} levels.")
        raise _placed(deep, where)
    return resolved


def evaluation_work() -> Work:
    """Return the limit of work for all references of a step."""
    return Work(evaluation.MAX_WORK)


def holds(text: str, scope: Mapping[str, Any]) -> bool:
    """Return True if a condition is met: null, false and empty values are not, zero is."""
    value = resolve(text, scope, "when")
    return not (value is None or value is False or value in ("", [], {}))


def has_references(value: Any) -> bool:
    """Return True if there is anything to resolve inside a value."""
    if isinstance(value, str):
        return OPENING in value
    if isinstance(value, Mapping):
        return any(has_references(item) for item in value.values())
    return isinstance(value, list) and any(has_references(item) for item in value)


def texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield every text inside a value, with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if OPENING in key:
                raise BadReference(
                    f"{where}: a key holds '${{'; only values have references.", field=where
                )
            yield from texts(inner, child(where, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, item(where, index))


def expressions(text: str) -> list[str]:
    """Return the expressions in one text."""
    return [match[1].strip() for match in REFERENCE.finditer(text)]


def check_text(text: str) -> None:
    """Refuse a text with an incomplete reference: it would silently stay as it is."""
    if "$${" in text:
        raise BadReference("'$${' is not an escape, and a reference cannot follow a '$'.")
    if any(OPENING in between for between in REFERENCE.split(text)[::2]):
        raise BadReference(
            f"'{shown(text)}' has a '${{' that does not begin a reference; write ${{inputs.name}},"
            " without braces inside."
        )


def check_expression(text: str, roots: tuple[str, ...] = ROOTS) -> Expression:
    """Refuse an expression that cannot be evaluated or has an unknown root."""
    expression = parsed(text)
    if not expression.roots or not expression.roots.issubset(roots):
        raise BadReference(
            f"{quoted(text)} must begin with {', '.join(roots[:-1])} or {roots[-1]}."
        )
    return expression


class _Resolver:
    """Resolves the references of one step, and counts the size of their values before they are built."""

    def __init__(self, scope: Mapping[str, Any], work: Work) -> None:
        self._scope = scope
        self._left = MAX_FRAME
        self._work = work
        self._begun = 0  # texts with references

    def resolve(self, value: Any) -> Any:
        """Return a value with its references replaced."""
        if isinstance(value, str):
            return self._text(value) if OPENING in value else value
        if isinstance(value, Mapping):
            return {key: self.resolve(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolve(inner) for inner in value]
        return value

    def blamed(self, value: Any, where: str) -> str:
        """Return the path of the text at which resolving this value stopped."""
        paths = (path for path, text in texts(value, where) if OPENING in text)
        return next(islice(paths, self._begun - 1, None)).removeprefix(".")

    def _text(self, text: str) -> Any:
        self._begun += 1
        if alone := REFERENCE.fullmatch(text):
            return self._found(alone[1].strip())
        return REFERENCE.sub(lambda match: _as_text(self._found(match[1].strip())), text)

    def _found(self, text: str) -> Any:
        value = self._searched(text)
        for size in _sizes(value):
            self._left -= size
            if self._left < 0:
                raise BadReference(
                    f"{quoted(text)} makes the parameters larger than {MAX_FRAME} bytes."
                )
        return value

    def _searched(self, text: str) -> Any:
        expression = parsed(text)
        try:
            return expression.search(self._scope, self._work)
        except TooMuchWork:
            raise BadReference(
                f"{quoted(text)}, with the references before it, takes too much work on this run's values;"
                " let a node do it."
            ) from None
        except (
            *(ValueError, TypeError, ArithmeticError, LookupError, AttributeError),
            *(RecursionError, MemoryError),
        ) as error:
            # JMESPathError is a ValueError; Python's own errors come from mixed types. Their messages quote values.
            reason = reason_of(error)
            raise BadReference(
                f"{quoted(text)} cannot be evaluated on this run's values{reason and ': '}{reason}."
            ) from None


def _placed(bad: BadReference, path: str) -> BadReference:
    return BadReference(f"{path}: {bad.detail}", field=path) if path else bad


def _sizes(value: Any) -> Iterator[int]:
    """Yield the approximate JSON sizes of a value's parts one by one: a small expression can select a huge value."""
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
            # A long number takes long to write, too.
            yield 1 + (part.bit_length() // 4 if isinstance(part, int) else 0)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
