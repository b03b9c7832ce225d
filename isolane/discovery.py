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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from isolane.node import NodeRegistry
from isolane.tasks import register_tasks
from isolane.traces import place_of

ENTRY_POINTS = "isolane.nodes"


class DiscoveryError(Exception):
    """A package with nodes cannot be loaded."""


def discover(
    registry: NodeRegistry, *, packages: Sequence[str], tasks: Sequence[str]
) -> dict[str, str]:
    """Import all packages with nodes; return their versions, by name."""
    versions = {"isolane": _version("isolane")}
    for package in ("isolane.nodes", *packages):
        _import(package)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        _load(f"entry point {entry.name} = {entry.value}", entry.load)
        if entry.dist is not None:
            versions[entry.dist.name] = entry.dist.version
    for module in _unique(module for task in tasks for module in _walk(task)):
        _load(f"package {module.__name__}", partial(register_tasks, module, registry))
    return versions | {name: _version(name) for name in (*packages, *tasks)}


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


def _unique(modules: Iterable[ModuleType]) -> list[ModuleType]:
    return list({module.__name__: module for module in modules}.values())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[package], "__version__", "unknown"))
