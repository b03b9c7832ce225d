"""JMESPath with bounded work: a worker cannot react to timeouts and cancellation while it evaluates. Pure.

A tenant writes the expression and sends the values. Every visit of the tree is paid for, and every function and
comparison by the size of its arguments, before it happens.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter

from executions.blueprints.work import Work

MAX_WORK = 40_000_000  # units of about 10 ns
_VISIT = 50
_CALL = 60  # of a function or a comparison
_LOOK = 20  # one value inside another is looked at
_COPY = 5  # one value is copied into a new list, which takes memory, too
_ORDER = 3  # one comparison of two short values
_COMPARED = 16  # characters in one unit
_READ = 4  # likewise, if each is looked at by itself
_NEEDLE = 100  # characters; the time to search for a longer text does not grow with it
_LEVELS = 24  # comparisons of one value in a sort of as many as fit in memory
_EQUALITY = frozenset({"eq", "ne"})

Price = Callable[[list[Any]], Iterator[int]]


def evaluate(tree: Any, scope: Mapping[str, Any], work: Work) -> Any:
    """Return the value of a parsed expression; raises TooMuchWork, and the errors of jmespath."""
    return _Interpreter(work).visit(tree, scope)


class _Functions(Functions):
    """The functions of JMESPath, each paid for by its arguments."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def call_function(self, function_name: str, resolved_args: Iterable[Any]) -> Any:
        given = list(resolved_args)
        self._work.spend(_CALL)
        for units in _PRICES.get(function_name, _of_texts)(given):
            self._work.spend(units)
        return super().call_function(function_name, given)

    def _create_key_func(self, expref: Any, allowed_types: list[str], function_name: str) -> Any:
        key_of = super()._create_key_func(  # type: ignore[misc]  # its stub leaves it out
            expref, allowed_types, function_name
        )
        levels = _LEVELS if function_name == "sort_by" else 1

        def paid(value: Any) -> Any:
            key = key_of(value)
            self._work.spend(_CALL + levels * (_ORDER + _length(key) // _COMPARED))
            return key

        return paid


class _Interpreter(TreeInterpreter):
    """Walks the tree of an expression."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work
        self._functions = _Functions(work)
        self._visits: dict[str, Callable[..., Any]] = {}

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        # Does not call the original: one more call on the stack would reduce the depth that can be evaluated.
        self._work.spend(_VISIT)
        kind = node["type"]
        method = self._visits.get(kind)
        if method is None:
            method = self._visits[kind] = getattr(self, f"visit_{kind}")
        return method(node, *args, **kwargs)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        left = self.visit(node["children"][0], value)
        right = self.visit(node["children"][1], value)
        self._work.spend(_CALL)
        if isinstance(left, str | list | dict):
            for units in _of_comparing(left, right):
                self._work.spend(units)
        name = node["value"]
        if name in _EQUALITY or (_has_order(left) and _has_order(right)):
            return self.COMPARATOR_FUNC[name](left, right)
        return None

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        self._work.spend(_LOOK * len(base))
        self._work.spend(_COPY * sum(len(inner) for inner in base if isinstance(inner, list)))
        flat: list[Any] = []
        for inner in base:
            flat.extend(inner if isinstance(inner, list) else (inner,))
        return flat

    def visit_slice(self, node: Any, value: Any) -> Any:
        self._work.spend(_COPY * _length(value))
        return super().visit_slice(node, value)


# --- prices
def _of_texts(given: list[Any]) -> Iterator[int]:
    yield sum(len(value) for value in given if isinstance(value, str)) // _READ


def _of_looking(given: list[Any]) -> Iterator[int]:
    yield _LOOK * sum(map(_length, given))


def _of_copying(given: list[Any]) -> Iterator[int]:
    yield _COPY * sum(_length(value) for value in given if not isinstance(value, str))
    yield from _of_texts(given)


def _of_the_most(given: list[Any]) -> Iterator[int]:
    yield from _of_looking(given)
    yield _characters(given[0]) // _COMPARED if given else 0


def _of_sorting(given: list[Any]) -> Iterator[int]:
    yield from _of_looking(given)
    if given:
        items = _length(given[0])
        compared = _ORDER * items + _characters(given[0]) // _COMPARED
        yield items.bit_length() * compared


def _of_containing(given: list[Any]) -> Iterator[int]:
    if len(given) != 2:
        return
    subject, wanted = given
    if isinstance(wanted, str):
        each = _ORDER + len(wanted) // _COMPARED
        within = min(len(wanted), _NEEDLE) / _COMPARED
        yield int(_length(subject) * (within if isinstance(subject, str) else each))
    elif isinstance(wanted, list | dict):
        yield from _of_all(subject)
    else:
        yield _ORDER * _length(subject)


def _of_comparing(left: Any, right: Any) -> Iterator[int]:
    """Yield the price of a comparison; values that differ in type or length cost nothing."""
    if isinstance(left, str) and isinstance(right, str):
        yield min(len(left), len(right)) // _COMPARED
    elif isinstance(left, list | dict) and _length(left) == _length(right):
        yield from _of_all(left)


def _of_all(value: Any) -> Iterator[int]:
    """Yield the price of every part of a value, each before its inner parts are visited."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield len(part) // _COMPARED
        elif isinstance(part, dict):
            yield _LOOK * len(part)
            yield sum(map(len, part)) // _COMPARED
            waiting.extend(part.values())
        elif isinstance(part, list):
            yield _LOOK * len(part)
            waiting.extend(part)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _characters(value: Any) -> int:
    return (
        sum(len(inner) for inner in value if isinstance(inner, str))
        if isinstance(value, list)
        else 0
    )


def _has_order(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


_PRICES: Mapping[str, Price] = {
    "avg": _of_looking,
    "contains": _of_containing,
    "keys": _of_copying,
    "map": _of_looking,
    "max": _of_the_most,
    "max_by": _of_looking,
    "merge": _of_looking,
    "min": _of_the_most,
    "min_by": _of_looking,
    "reverse": _of_copying,
    "sort": _of_sorting,
    "sort_by": _of_looking,
    "sum": _of_looking,
    "values": _of_copying,
}
