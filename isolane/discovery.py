"""The discovery of a runner's nodes: listed packages, entry points, packages with task functions.

Timing: once, before the runner serves.
Model: importing registers; modules are imported in the main thread.
Guarantee: only packages that an operator listed or installed are imported, each module once.
Failure: DiscoveryError names the package and the author's line; the runner does not serve without it.
"""

import importlib
import importlib.metadata
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from isolane.node import NodeRegistry
from isolane.tasks import register_tasks
from isolane.traces import place_of

ENTRY_POINTS = "isolane.nodes"
BUILT_IN = "isolane.nodes"


class DiscoveryError(Exception):
    """A package with nodes cannot be loaded."""


class NodeSource(NamedTuple):
    """A package or entry point with nodes; `load` imports it and returns versions by name."""

    name: str
    load: Callable[[], dict[str, str]]


def node_sources(
    registry: NodeRegistry, *, packages: Sequence[str], tasks: Sequence[str]
) -> list[NodeSource]:
    """Return everything that brings nodes, in the order in which it is imported."""
    seen: set[str] = set()
    return [
        NodeSource(f"package {BUILT_IN}", _built_in),
        *(NodeSource(f"package {name}", partial(_package, name)) for name in packages),
        *(
            NodeSource(f"entry point {entry.name} = {entry.value}", partial(_entry_point, entry))
            for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)
        ),
        *(
            NodeSource(f"task package {name}", partial(_tasks, name, registry, seen))
            for name in tasks
        ),
    ]


def _built_in() -> dict[str, str]:
    _import(BUILT_IN)
    return {"isolane": _version("isolane")}


def _package(name: str) -> dict[str, str]:
    _import(name)
    return {name: _version(name)}


def _entry_point(entry: importlib.metadata.EntryPoint) -> dict[str, str]:
    _load(f"entry point {entry.name} = {entry.value}", entry.load)
    return {} if entry.dist is None else {entry.dist.name: entry.dist.version}


def _tasks(name: str, registry: NodeRegistry, seen: set[str]) -> dict[str, str]:
    for module in list(_walk(name)):
        if module.__name__ not in seen:
            seen.add(module.__name__)
            _load(f"package {module.__name__}", partial(register_tasks, module, registry))
    return {name: _version(name)}


def _import(name: str) -> ModuleType:
    module: ModuleType = _load(f"package {name}", partial(importlib.import_module, name))
    return module


def _load(what: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except BaseException as error:  # SystemExit, too, must name what raised it
        reason = " ".join(f"{place_of(error)}{type(error).__name__}: {error}".split())
        raise DiscoveryError(f"{what} cannot be imported: {reason}") from error


def _walk(name: str) -> Iterator[ModuleType]:
    module = _import(name)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name != "__main__":  # importing it would run it
            yield from _walk(f"{name}.{found.name}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[package], "__version__", "unknown"))
