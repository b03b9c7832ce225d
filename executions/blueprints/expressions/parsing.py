"""One JMESPath expression, parsed and checked: its functions, and the inputs and steps it needs. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions

from executions.blueprints.errors import BadReference, shown
from executions.blueprints.expressions.evaluation import evaluate
from executions.blueprints.suggestions import instead_of
from executions.blueprints.work import Work

MAX_EXPRESSION = 1000  # characters
MAX_SELECTED = 10  # members of all [a, b] in one expression; nested, they multiply what they select
_CACHED = 1024
# A separator or a quote can make a text grow without limit; use text around a reference instead.
_GROWING = frozenset({"join", "to_string"})
_FUNCTIONS: frozenset[str] = frozenset(Functions.FUNCTION_TABLE) - _GROWING
_CHAINS = frozenset({"index_expression", "pipe", "subexpression"})
_PROJECTIONS = frozenset({"filter_projection", "projection", "value_projection"})


class _On(Enum):
    """The value that a part of an expression looks at."""

    ROOT = auto()
    INPUTS = auto()
    STEPS = auto()
    OTHER = auto()


_WITHIN = {"inputs": _On.INPUTS, "steps": _On.STEPS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Expression:
    """A checked expression."""

    roots: frozenset[str]  # the names that its paths begin with, such as inputs
    inputs: tuple[str, ...]  # the names of inputs that it needs, as written
    steps: tuple[str, ...]  # the keys of steps that it needs
    path: tuple[str, ...]  # the names of a plain path; empty for other expressions
    tree: Any

    def search(self, scope: Mapping[str, Any], work: Work) -> Any:
        """Return its value in a scope; None if there is none."""
        if not self.path:
            return evaluate(self.tree, scope, work)
        value: Any = scope
        for name in self.path:
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
        return value


@lru_cache(maxsize=_CACHED)
def parsed(text: str) -> Expression:
    """Parse an expression, or refuse it."""
    if len(text) > MAX_EXPRESSION:
        raise BadReference(f"{quoted(text)} is longer than {MAX_EXPRESSION} characters.")
    try:
        tree = jmespath.compile(text).parsed
    except (JMESPathError, ValueError, RecursionError, MemoryError):
        raise BadReference(f"{quoted(text)} is not a JMESPath expression.") from None
    found = list(_parts(tree))
    for _, node in found:
        _refuse_function(text, node)
        _refuse_loose_not(text, node)
    if sum(_selected(node) for _, node in found) > MAX_SELECTED:
        raise BadReference(f"{quoted(text)} selects more than {MAX_SELECTED} values.")
    return Expression(
        roots=frozenset(
            _begins_with(node) for on, node in found if on is _On.ROOT and _leads(node)
        ),
        inputs=_fields(found, _On.INPUTS),
        steps=_fields(found, _On.STEPS),
        path=_plain_path(tree),
        tree=tree,
    )


def quoted(text: str) -> str:
    """Return an expression as a message shows it."""
    return f"'${{{shown(text)}}}'"


def _parts(tree: Any) -> Iterator[tuple[_On, Any]]:
    """Yield every node of an expression and the value it looks at, in written order, without recursion."""
    waiting = [(_On.ROOT, tree)]
    while waiting:
        on, node = waiting.pop()
        yield on, node
        children = [child for child in node["children"] if isinstance(child, dict)]
        waiting.extend(reversed([*zip(_looks(on, node["type"], children), children, strict=True)]))


def _looks(on: _On, kind: str, children: list[Any]) -> list[_On]:
    """Return the values that a node's children look at: in a chain each looks at the one before."""
    if kind == "expref":
        return [_On.OTHER for _ in children]
    if kind not in _CHAINS | _PROJECTIONS:
        return [on for _ in children]
    looks = [on]
    for before in children[:-1]:
        into = kind in _CHAINS and looks[-1] is _On.ROOT and _is_field(before)
        looks.append(_WITHIN.get(before["value"], _On.OTHER) if into else _On.OTHER)
    return looks


def _fields(found: list[tuple[_On, Any]], wanted: _On) -> tuple[str, ...]:
    return tuple(node["value"] for on, node in found if on is wanted and _is_field(node))


def _is_field(node: Any) -> bool:
    return bool(node["type"] == "field")


def _leads(node: Any) -> bool:
    return node["type"] in ("current", "field")


def _begins_with(node: Any) -> str:
    return node["value"] if _is_field(node) else "@"


def _plain_path(tree: Any) -> tuple[str, ...]:
    names = tree["children"] if tree["type"] == "subexpression" else [tree]
    return tuple(node["value"] for node in names) if all(map(_is_field, names)) else ()


def _selected(node: Any) -> int:
    return len(node["children"]) if node["type"] == "multi_select_list" else 0


def _refuse_function(text: str, node: Any) -> None:
    if node["type"] != "function_expression" or node["value"] in _FUNCTIONS:
        return
    name = node["value"]
    if name in _GROWING:
        raise BadReference(f"{quoted(text)} uses {name}(), which is not allowed.")
    raise BadReference(
        f"{quoted(text)}: there is no function {shown(name)}(); {instead_of(name, _FUNCTIONS)}"
    )


def _refuse_loose_not(text: str, node: Any) -> None:
    """Refuse `!a.b`: in JMESPath it means `(!a).b`, which is always null."""
    first = node["children"][0] if node["type"] in _CHAINS else None
    if isinstance(first, dict) and first["type"] == "not_expression" and node["type"] != "pipe":
        raise BadReference(f"{quoted(text)}: '!' takes the first name only; write !(inputs.name).")
