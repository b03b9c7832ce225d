"""Plain functions and Celery task functions as nodes: `uses: task:package.module.name`.

Celery is not imported here: its task objects are recognised by their attributes.
"""

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, get_type_hints

from isolane.node import Node, NodeRegistry
from isolane.protocol import ProtocolError, dump
from isolane.shapes import schema_of

PREFIX = "task:"


def register_tasks(module: ModuleType, registry: NodeRegistry) -> None:
    """Register the public functions that this module defines."""
    for name, function in _functions(module):
        known = registry.of(function)
        if known is not None and known.takes_context:
            continue  # already a node, by its own name
        if (task := _node(module, name, function)) is not None:
            registry.add(task)


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        function = value if type(value) is FunctionType else _celery_function(value)
        if function is not None and function.__module__ == module.__name__:
            yield name, function


def _celery_function(value: Any) -> FunctionType | None:
    """Return the function of an unbound Celery task; a bound one needs Celery's `self`."""
    if isinstance(value, type):
        return None
    try:
        is_task = callable(value.run) and isinstance(value.name, str)
        function = value.__wrapped__ if is_task else None
    except Exception:  # noqa: BLE001 - a lazy object of any kind may be asked here
        return None
    return function if type(function) is FunctionType else None


def _node(module: ModuleType, name: str, function: FunctionType) -> Node | None:
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in parameters):
        return None  # a step passes parameters by name only
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    hints = _hints(function)
    return Node(
        name=f"{PREFIX}{module.__name__}.{name}",
        function=function,
        hints={p.name: hints.get(p.name, Any) for p in named},
        required=frozenset(p.name for p in named if p.default is p.empty),
        defaults={p.name: p.default for p in named if _is_json(p.default)},
        takes_context=False,
    )


def _hints(function: FunctionType) -> dict[str, Any]:
    """Return the hints that have a shape in JSON; the others were not written for steps."""
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - such as a name that only type checkers import
        return {}
    return {name: hint for name, hint in hints.items() if _has_shape(hint)}


def _has_shape(hint: Any) -> bool:
    try:
        schema_of(hint)
    except TypeError:
        return False
    return True


def _is_json(value: Any) -> bool:
    try:
        dump(value)
    except ProtocolError:
        return False
    return True
